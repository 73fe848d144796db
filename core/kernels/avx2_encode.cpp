// SPDX-License-Identifier: BSL-1.0
//
// Encoding with AVX2, 32 bytes of components at a time. All widths go down the same ladder: neighbours are joined until a lane of
// 32 or 64 bits holds whole bytes or has no more neighbours to join, then the bytes of the lanes are moved together. 16-bit
// components, 10 bits kept:
//
//   |......dddddddddd|......cccccccccc|......bbbbbbbbbb|......aaaaaaaaaa|   a lane of 64 bits
//   |............ddddddddddcccccccccc|............bbbbbbbbbbaaaaaaaaaa|     neighbours joined: vpmaddwd by (1, 2^10)
//   |........................ddddddddddccccccccccbbbbbbbbbbaaaaaaaaaa|     and again: vpsllvd up in the even lanes, vpsrlq down
//   |hhhhhhhhhhggggggggggffffffffffeeeeeeeeeeddddddddddccccccccccbbbb ..   the 5 bytes of each lane together: vpshufb
//
// The last step depends on m, the bits that a 64-bit lane has in the end:
//
//   whole bytes: vpshufb; a half of the vector is then a multiple of 4 bytes (vpermd, two vectors at a time) or not (two stores of
//   16 bytes, or two vectors at a time, see below)
//   m % 8 == 4: the odd lane begins in the middle of a byte; shifted there, lanes moved apart, or-ed
//   other m: the upper half begins within a byte too; that byte is carried from one half to the next. 59 and 61 to 63 bits that
//   begin late in a byte end in a ninth one, which is shifted and shuffled apart
//   few bits of wide components: bytes are made first, and encoded
//
// Two vectors at a time: a load brings 16 bytes to each half such that what will lie together is in the same half of both vectors.
// Stores of 32 bytes are half as many as those of a half each, and stores are what these kernels are bound by (16 bytes that become
// 10, two of them a letter):
//
//   in    |AAAAA...|BBBBB...|CCCCC...|DDDDD...|
//   u v   |CCCCC...|AAAAA...|        |DDDDD...|BBBBB...|
//   w z   |DDDCCCCC|BBBAAAAA|        |......DD|......BB|        vpshufb, or-ed
//   out   |......BB|BBBAAAAA|  then  |......DD|DDDCCCCC|        vperm2i128; the second store begins where the Bs end
//
// Of short pairs w has all, and vpermd brings its halves together.
//
// Where 8, 16 or 24 bytes of a vector are kept, the bytes of two vectors are stored without overlap: stores that overlap cross a border
// of cache lines more often, which takes two cycles more. 8 of 16 bits, in quarters:
//
//   |..x1|..x0|  |y1..|y0..|        vpshufb
//   |y1x1|y0x0|                     or-ed
//   |y1y0|x1x0|                     vpermq
//
// 12 of 16 bits, in dwords:
//
//   x y   |. x5 x4 x3|. x2 x1 x0|        |. y5 y4 y3|. y2 y1 y0|        vpshufb
//         |. . x5 x4|x3 x2 x1 x0|        |y1 y0 . .|y5 y4 y3 y2|        vpermd
//   out   |y1 y0 x5 x4|x3 x2 x1 x0| then            |y5 y4 y3 y2|       vpblendd
//
#include "core/kernels/avx2_encode.hpp"

#ifdef ZARRBITS_X86_KERNELS

#include <array>

namespace zarrbits::detail::avx2 {

namespace {

// Where bytes go, and how far lanes are turned, for 2 vectors of 4 lanes. A byte of a vpshufb index that is 0x80 gives zero.
struct plan {
  alignas(32) std::uint8_t even[64];   // of the lower lane of a half, or of all lanes where these are whole bytes (of pairs: to w)
  alignas(32) std::uint8_t odd[64];    // of the upper lane (of pairs, in the second vector: to z)
  alignas(32) std::uint8_t carry[64];  // byte 0: the last byte of a half, if the next half begins in it
  alignas(32) std::uint64_t turn[8];   // bit of its first byte at which a lane begins
  std::uint8_t start[4];               // byte at which each half begins
};

// `lane_bytes`: 4 where 32-bit lanes are whole bytes, 8 else; `m`: bits of a lane; `in_pairs`: two vectors at a time, see above.
constexpr plan make_plan(unsigned lane_bytes, unsigned m, bool in_pairs) {
  plan p{};
  for (unsigned half = 0; half < 4; ++half) {
    std::uint8_t *even = p.even + 16 * half, *odd = p.odd + 16 * half, *carry = p.carry + 16 * half;
    for (unsigned i = 0; i < 16; ++i) even[i] = odd[i] = carry[i] = 0x80;
    const unsigned lanes = 16 / lane_bytes;
    p.start[half] = static_cast<std::uint8_t>(half * lanes * m / 8);
    if (m % 8 == 0) {
      const unsigned bytes = lanes * m / 8;
      for (unsigned i = 0; i < bytes; ++i) {
        const unsigned to = in_pairs && half >= 2 ? bytes + i : i;
        (to < 16 ? even : odd)[to % 16] = static_cast<std::uint8_t>(i / (m / 8) * lane_bytes + i % (m / 8));
      }
      continue;
    }
    const unsigned first = half * 2 * m % 8, second = first + m, end = first + 2 * m;
    p.turn[2 * half] = first;
    p.turn[2 * half + 1] = second % 8;
    for (unsigned i = 0; i * 8 < second; ++i) even[i] = static_cast<std::uint8_t>(i);
    for (unsigned i = second / 8; i * 8 < end; ++i) odd[i] = static_cast<std::uint8_t>(8 + i - second / 8);
    if (end % 8 != 0) carry[0] = static_cast<std::uint8_t>(end / 8);
  }
  return p;
}

// Components of `width` bits: is a 32-bit lane whole bytes, so that it need not be joined with the next?
constexpr bool short_lanes(unsigned width, unsigned bits) {
  return width < 64 && 32 / width * bits % 8 == 0;
}

// How lanes become bytes.
enum class finish {
  of_8_bytes,   // short lanes, or 64-bit lanes, 8 bytes of a vector; two vectors, whose halves are moved together by vpermd
  of_16_bytes,  // the same, 16 bytes of a vector
  of_24_bytes,  // the same, 24 bytes
  two_stores,   // 64-bit lanes of whole bytes, a store for each half
  short_pairs,  // 64-bit lanes of whole bytes, two vectors, less than 8 bytes of each half
  long_pairs,   // the same, more than 8 bytes
  half_bytes,   // 64-bit lanes of bytes and a half
  carry,        // 64-bit lanes of any bits, two vectors
  wide_carry,   // the same, but a lane may begin so late in its first byte that it ends in a ninth one
  from_bytes,   // components are brought into bytes first
};

constexpr bool are_pairs(finish how) {
  return how == finish::short_pairs || how == finish::long_pairs;
}

// What measured best: pairs cost more instructions, which those with many already have no room for.
constexpr finish finish_of(unsigned width, unsigned bits) {
  const unsigned m = 64 / width * bits;
  if (m % 16 == 0) return m == 16 ? finish::of_8_bytes : m == 32 ? finish::of_16_bytes : finish::of_24_bytes;
  if (m % 8 == 4) return finish::half_bytes;
  if (m % 8 != 0) return bits < 8 ? finish::from_bytes : m == 59 || m > 60 ? finish::wide_carry : finish::carry;
  if (width == 8 || (width == 16 && bits > 8)) return finish::two_stores;
  return 2 * bits < width ? finish::short_pairs : finish::long_pairs;
}

template <unsigned width>
constexpr auto make_plans() {
  std::array<plan, width> plans{};
  for (unsigned bits = 1; bits < width; ++bits) {
    const finish how = finish_of(width, bits);
    const bool in_pairs = are_pairs(how) || how == finish::of_8_bytes || how == finish::of_16_bytes;
    plans[bits] = short_lanes(width, bits) ? make_plan(4, 32 / width * bits, in_pairs) : make_plan(8, 64 / width * bits, in_pairs);
  }
  return plans;
}

template <unsigned width>
constexpr auto plans = make_plans<width>();

// What else lanes of 59, 61, 62 and 63 bits need.
struct wide_plan {
  plan common;
  alignas(32) std::uint8_t ninth[64];  // of lanes shifted down by 64 - turn, whose first byte is then the ninth
  alignas(32) std::uint64_t last[8];   // what shifts a lane down to the byte that is carried
};

constexpr wide_plan make_wide_plan(unsigned m) {
  wide_plan w{make_plan(8, m, false), {}, {}};
  for (unsigned half = 0; half < 4; ++half) {
    std::uint8_t *even = w.common.even + 16 * half, *odd = w.common.odd + 16 * half, *ninth = w.ninth + 16 * half;
    for (unsigned i = 0; i < 16; ++i) ninth[i] = 0x80;
    const unsigned second = half * 2 * m % 8 + m, end = second + m;
    for (unsigned lane = 0; lane < 2; ++lane) {
      const unsigned after = (lane == 0 ? 0 : second / 8) + 8;  // the byte after the lane's first eight
      std::uint8_t* eight = lane == 0 ? even : odd;
      if (after < 16 && eight[after] != 0x80) {
        eight[after] = 0x80;
        ninth[after] = static_cast<std::uint8_t>(8 * lane);
      }
    }
    if (end % 8 != 0) w.common.carry[16 * half] = 8;
    w.last[2 * half + 1] = m - end % 8;
  }
  return w;
}

constexpr std::array<wide_plan, 5> wide_plans = {make_wide_plan(59), wide_plan{}, make_wide_plan(61), make_wide_plan(62), make_wide_plan(63)};

template <unsigned width, finish how, before prepare, bool wide = false>
class packer {
 public:
  static constexpr bool in_pairs = are_pairs(how);
  static constexpr bool moves_halves = how == finish::of_8_bytes || how == finish::of_16_bytes || how == finish::of_24_bytes;
  static constexpr std::size_t vectors = how == finish::two_stores || how == finish::half_bytes ? 1 : 2;
  static constexpr std::size_t components = vectors * 256 / width, at_once = 4 / vectors;
  static constexpr std::size_t reach = how == finish::of_8_bytes                                     ? 16
                                       : how == finish::of_16_bytes || how == finish::short_pairs ? 32
                                       : how == finish::of_24_bytes                                ? 48
                                                                                                   : 32 * vectors;
  std::size_t bytes_in() const noexcept { return 32 * vectors; }
  std::size_t bytes_out() const noexcept { return bytes_out_; }

  ZARRBITS_AVX2 explicit packer(const packing& p) noexcept : prepared_(p) {
    const unsigned bits = p.bits;
    const wide_plan& w = how == finish::wide_carry ? wide_plans[64 / width * bits - 59] : wide_plans[0];
    const plan& l = how == finish::wide_carry ? w.common : plans<width>[bits];
    bytes_out_ = components * bits / 8;
    weights8_ = _mm256_set1_epi16(static_cast<short>(1 | 1 << (bits % 8 + 8)));
    const unsigned pair = width == 8 ? 2 * bits : bits;  // bits of a 16-bit lane
    weights16_ = _mm256_set1_epi32(1 | 1 << (pair % 16 + 16));
    const unsigned quad = width == 8 ? 4 * bits : width == 16 ? 2 * bits : bits;  // bits of a 32-bit lane
    up_ = _mm256_set1_epi64x(32 - quad % 32);
    const unsigned down = width == 64 ? 0 : 32 - quad % 32;
    down_ = _mm256_set1_epi64x(down);
    turn_[0] = load(l.turn);
    turn_[1] = load(l.turn + 4);
    if (how == finish::wide_carry)
      for (int v = 0; v < 2; ++v) {
        ninth_[v] = load(w.ninth + 32 * v);
        last_[v] = load(w.last + 4 * v);
        above_[v] = _mm256_sub_epi64(_mm256_set1_epi64x(64), turn_[v]);
      }
    else if (!wide && width != 64)
      for (__m256i& t : turn_) t = _mm256_sub_epi64(_mm256_set1_epi64x(down), t);
    for (int v = 0; v < 2; ++v) {
      even_[v] = load(l.even + 32 * v);
      odd_[v] = load(l.odd + 32 * v);
      carry_[v] = load(l.carry + 32 * v);
    }
    for (int i = 0; i < 4; ++i) start_[i] = l.start[i];
    // bytes of a half (of pairs: of both) are dwords 0 ... n - 1 of it
    const int n = static_cast<int>(l.start[in_pairs ? 2 : 1] / 4);
    const __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), upper = _mm256_cmpgt_epi32(i, _mm256_set1_epi32(n - 1));
    together_ = _mm256_add_epi32(i, _mm256_and_si256(upper, _mm256_set1_epi32(4 - n)));
  }

  ZARRBITS_AVX2_INLINE __m256i operator()(const std::byte* in, std::byte* out) const noexcept {
    if constexpr (in_pairs) return pair(in, out);
    __m256i x = load_once(in), seen = prepared_.seen(x);
    x = lanes(x);
    if constexpr (how == finish::of_8_bytes || how == finish::of_16_bytes) {
      const __m256i y = load_once(in + 32);
      seen = _mm256_or_si256(seen, prepared_.seen(y));
      x = _mm256_or_si256(_mm256_shuffle_epi8(x, even_[0]), _mm256_shuffle_epi8(lanes(y), even_[1]));
      if constexpr (how == finish::of_16_bytes) store(out, _mm256_permute4x64_epi64(x, 0xd8));
      else store_half(out, _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 4, 1, 5, 7, 7, 7, 7)));
    } else if constexpr (how == finish::of_24_bytes) {
      __m256i y = load_once(in + 32);
      seen = _mm256_or_si256(seen, prepared_.seen(y));
      x = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(x, even_[0]), together_);
      y = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(lanes(y), even_[0]), _mm256_setr_epi32(2, 4, 5, 6, 7, 7, 0, 1));
      store(out, _mm256_blend_epi32(x, y, 0xc0));
      store_half(out + 32, y);
    } else if constexpr (how == finish::two_stores) {
      store_halves(out, out + start_[1], _mm256_shuffle_epi8(down(x), even_[0]));
    } else if constexpr (how == finish::half_bytes) {
      x = turned(x, 0);
      store_halves(out, out + start_[1], x);
    } else {
      __m256i y = load_once(in + 32);
      seen = _mm256_or_si256(seen, prepared_.seen(y));
      y = lanes(y);
      __m256i last_x = x, last_y = y;
      if constexpr (how == finish::wide_carry) {
        x = down(x);
        y = down(y);
        last_x = _mm256_srlv_epi64(x, last_[0]);
        last_y = _mm256_srlv_epi64(y, last_[1]);
        x = turned_far(x, 0);
        y = turned_far(y, 1);
      } else {
        last_x = x = turned(x, 0);
        last_y = y = turned(y, 1);
      }
      const __m256i from_x = _mm256_shuffle_epi8(last_x, carry_[0]), from_y = _mm256_shuffle_epi8(last_y, carry_[1]);
      x = _mm256_or_si256(x, _mm256_permute2x128_si256(from_x, from_x, 0x08));
      y = _mm256_or_si256(y, _mm256_permute2x128_si256(from_x, from_y, 0x21));
      store_halves(out, out + start_[1], x);
      store_halves(out + start_[2], out + start_[3], y);
    }
    return seen;
  }

  ZARRBITS_AVX2_INLINE bool lossless(__m256i seen) const noexcept { return prepared_.lossless(seen); }

 private:
  ZARRBITS_AVX2_INLINE __m256i pair(const std::byte* in, std::byte* out) const noexcept {
    const __m256i u = load_halves(in, in + 32), v = load_halves(in + 16, in + 48);
    const __m256i x = down(lanes(u)), y = down(lanes(v));
    const __m256i w = _mm256_or_si256(_mm256_shuffle_epi8(x, even_[0]), _mm256_shuffle_epi8(y, even_[1]));
    if constexpr (how == finish::short_pairs) {
      store(out, _mm256_permutevar8x32_epi32(w, together_));
    } else {
      const __m256i z = _mm256_shuffle_epi8(y, odd_[1]);
      store(out, _mm256_permute2x128_si256(w, z, 0x20));
      store(out + start_[2], _mm256_permute2x128_si256(w, z, 0x31));
    }
    return _mm256_or_si256(prepared_.seen(u), prepared_.seen(v));
  }

  ZARRBITS_AVX2_INLINE __m256i down(__m256i x) const noexcept { return width == 64 ? x : _mm256_srlv_epi64(x, down_); }

  // Components joined in lanes of 32 bits, or of 64 bits with `down_` bits of nothing below them.
  ZARRBITS_AVX2_INLINE __m256i lanes(__m256i x) const noexcept {
    x = prepared_(x);
    if constexpr (width == 8) x = _mm256_maddubs_epi16(weights8_, x);
    if constexpr (width == 8 || (width == 16 && !wide)) x = _mm256_madd_epi16(x, weights16_);
    if constexpr (width == 16 && wide)  // 15 bits: the weight would be -2^15
      x = _mm256_srli_epi32(_mm256_mullo_epi16(x, _mm256_set1_epi32(0x10002)), 1);
    if constexpr (width < 64 && !moves_halves) x = _mm256_sllv_epi32(x, up_);
    return x;
  }

  // 64-bit lanes at their bits, as bytes of the halves.
  ZARRBITS_AVX2_INLINE __m256i turned(__m256i x, int v) const noexcept {
    if constexpr (width == 64) {
      x = _mm256_sllv_epi64(x, turn_[v]);
    } else if constexpr (wide) {  // down and up again: the lane's bits and its turn do not both fit below
      x = _mm256_sllv_epi64(_mm256_srlv_epi64(x, down_), turn_[v]);
    } else {
      x = _mm256_srlv_epi64(x, turn_[v]);
    }
    return _mm256_or_si256(_mm256_shuffle_epi8(x, even_[v]), _mm256_shuffle_epi8(x, odd_[v]));
  }

  // The same where there may be a ninth byte (16 of a half at most: what is behind them is carried).
  ZARRBITS_AVX2_INLINE __m256i turned_far(__m256i x, int v) const noexcept {
    const __m256i eight = _mm256_sllv_epi64(x, turn_[v]), above = _mm256_srlv_epi64(x, above_[v]);
    return _mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8(eight, even_[v]), _mm256_shuffle_epi8(eight, odd_[v])),
                           _mm256_shuffle_epi8(above, ninth_[v]));
  }

  preparation<width, prepare> prepared_;
  __m256i weights8_, weights16_, up_, down_, together_;
  __m256i turn_[2], even_[2], odd_[2], carry_[2], ninth_[2], above_[2], last_[2];
  std::size_t bytes_out_, start_[4];
};

// 8-bit components, 4 bits kept: two vectors make one.
//   |....dddd|....cccc|....bbbb|....aaaa|    vpmaddubsw by (1, 16)
//   |........ddddcccc|........bbbbaaaa|      vpackuswb with the next vector, which leaves quarters in the order 0 2 1 3: vpermq
// 2 bits: the same twice, with (1, 4) and (1, 16), four vectors make one.
template <unsigned bits, before prepare>
class packer_8 {
 public:
  static constexpr std::size_t vectors = 8 / bits, components = 32 * vectors, reach = 32, at_once = 8 / vectors;
  std::size_t bytes_in() const noexcept { return 32 * vectors; }
  std::size_t bytes_out() const noexcept { return 32; }

  ZARRBITS_AVX2 explicit packer_8(const packing& p) noexcept : prepared_(p) {}

  ZARRBITS_AVX2_INLINE __m256i operator()(const std::byte* in, std::byte* out) const noexcept {
    const __m256i a = load_once(in), b = load_once(in + 32), seen = _mm256_or_si256(prepared_.seen(a), prepared_.seen(b));
    if constexpr (bits == 4) {
      store(out, _mm256_permute4x64_epi64(joined(a, b), 0xd8));
      return seen;
    } else {
      const __m256i c = load_once(in + 64), d = load_once(in + 96), weights = _mm256_set1_epi16(0x1001);
      const __m256i x =
          _mm256_packus_epi16(_mm256_maddubs_epi16(weights, joined(a, b)), _mm256_maddubs_epi16(weights, joined(c, d)));
      store(out, _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
      return _mm256_or_si256(seen, _mm256_or_si256(prepared_.seen(c), prepared_.seen(d)));
    }
  }

  ZARRBITS_AVX2_INLINE bool lossless(__m256i seen) const noexcept { return prepared_.lossless(seen); }

 private:
  ZARRBITS_AVX2_INLINE __m256i joined(__m256i a, __m256i b) const noexcept {
    const __m256i weights = _mm256_set1_epi16(1 | 1 << (bits + 8));
    return _mm256_packus_epi16(_mm256_maddubs_epi16(weights, prepared_(a)), _mm256_maddubs_epi16(weights, prepared_(b)));
  }

  preparation<8, prepare> prepared_;
};

template <template <before> class Step>
bool pack(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const bool shift = p.first_bit != 0;
  if (!is_checked(p))
    return shift ? encode_steps<Step<before::shift_and_mask>>(p, in, out, n) : encode_steps<Step<before::mask>>(p, in, out, n);
  if (p.is_signed)
    return shift ? encode_steps<Step<before::look_signed_and_shift>>(p, in, out, n)
                 : encode_steps<Step<before::look_signed>>(p, in, out, n);
  return shift ? encode_steps<Step<before::look_and_shift>>(p, in, out, n) : encode_steps<Step<before::look>>(p, in, out, n);
}

template <unsigned width, finish how, bool wide>
struct laned {
  template <before prepare>
  using step = packer<width, how, prepare, wide>;
};
template <unsigned bits>
struct of_8 {
  template <before prepare>
  using step = packer_8<bits, prepare>;
};

template <unsigned width, finish how, bool wide = false>
bool pack_lanes(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return pack<laned<width, how, wide>::template step>(p, in, out, n);
}

template <unsigned width>
bool pack_from_bytes(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;

template <unsigned width>
bool pack_lanes(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const unsigned short_lane = width == 64 ? 0 : 32 / width * p.bits;
  switch (finish_of(width, p.bits)) {
    case finish::of_8_bytes:
      if constexpr (width != 8) return pack_lanes<width, finish::of_8_bytes>(p, in, out, n);
      break;
    case finish::of_16_bytes:
      if constexpr (width != 8) return pack_lanes<width, finish::of_16_bytes>(p, in, out, n);
      break;
    case finish::of_24_bytes:
      return pack_lanes<width, finish::of_24_bytes>(p, in, out, n);
    case finish::two_stores:
      if constexpr (width <= 16) return pack_lanes<width, finish::two_stores>(p, in, out, n);
      break;
    case finish::short_pairs:
      if constexpr (width >= 16) return pack_lanes<width, finish::short_pairs>(p, in, out, n);
      break;
    case finish::long_pairs:
      if constexpr (width >= 32) return pack_lanes<width, finish::long_pairs>(p, in, out, n);
      break;
    case finish::half_bytes:
      if constexpr (width == 16 || width == 32)
        if (short_lane > 28) return pack_lanes<width, finish::half_bytes, true>(p, in, out, n);
      if constexpr (width >= 16) return pack_lanes<width, finish::half_bytes>(p, in, out, n);
      break;
    case finish::carry:
      if constexpr (width == 32)
        if (short_lane > 26) return pack_lanes<width, finish::carry, true>(p, in, out, n);
      if constexpr (width >= 32) return pack_lanes<width, finish::carry>(p, in, out, n);
      break;
    case finish::wide_carry:
      if constexpr (width >= 32) return pack_lanes<width, finish::wide_carry>(p, in, out, n);
      break;
    case finish::from_bytes:
      if constexpr (width >= 32) return pack_from_bytes<width>(p, in, out, n);
      break;
  }
  return portable_kernels.encode[log2_size(width / 8)](p, in, out, n);
}

// Few bits of wide components: a half of a vector would be less than a byte, or little more. What the two steps refuse is together
// what one would.
template <unsigned width>
bool pack_from_bytes(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  packing to_bytes = p, bytes = p;
  to_bytes.bits = 8;
  to_bytes.first_bit = std::min<std::uint8_t>(p.first_bit, width - 8);
  bytes.size = 1;
  bytes.type_bits = 8;
  bytes.first_bit = static_cast<std::uint8_t>(p.first_bit - to_bytes.first_bit);
  constexpr std::size_t at_once = 4096;
  std::byte block[at_once];
  for (std::size_t i = 0; i < n; i += at_once, out += at_once / 8 * p.bits) {
    const std::size_t count = std::min(n - i, at_once);
    if (!pack_lanes<width>(to_bytes, in + i * (width / 8), block, count) || !encode8(bytes, block, out, count)) return false;
  }
  return true;
}

}  // namespace

bool encode8(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.encode[0](p, in, out, n);
  switch (p.bits) {
    case 1:
      return encode_bool(p, in, out, n);
    case 2:
      return pack<of_8<2>::step>(p, in, out, n);
    case 4:
      return pack<of_8<4>::step>(p, in, out, n);
    default:
      return pack_lanes<8>(p, in, out, n);
  }
}

bool encode16(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.encode[1](p, in, out, n);
  return pack_lanes<16>(p, in, out, n);
}

bool encode32(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.encode[2](p, in, out, n);
  return pack_lanes<32>(p, in, out, n);
}

bool encode64(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.encode[3](p, in, out, n);
  return pack_lanes<64>(p, in, out, n);
}

}  // namespace zarrbits::detail::avx2

#endif
