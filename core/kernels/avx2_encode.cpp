// SPDX-License-Identifier: BSL-1.0
//
// Encoding of 2 bits and more with AVX2, 32 bytes of components at a time. encode_plans.hpp has the pictures and the tables; one
// bit is in avx2_bytes.cpp.
//
#include "core/kernels/avx2.hpp"
#include "core/kernels/encode_plans.hpp"

#ifdef ZARRBITS_X86_KERNELS

namespace zarrbits::detail::avx2 {

namespace {

ZARRBITS_AVX2_INLINE __m256i or_all(__m256i a, __m256i b, __m256i c) noexcept {
  return _mm256_or_si256(a, _mm256_or_si256(b, c));
}

template <unsigned width, before kind>
class preparation {
 public:
  ZARRBITS_AVX2 explicit preparation(const packing& p) noexcept {
    const loss l = what_is_lost(p);
    bias_ = broadcast<width>(l.bias);
    dropped_ = broadcast<width>(l.dropped);
    mask_ = broadcast<width>(low_bits(p.bits));
    first_ = broadcast<lane>(p.first_bit);
  }

  // What lossless() decides from, with one or two more vectors.
  ZARRBITS_AVX2_INLINE __m256i seen(__m256i so_far, __m256i x) const noexcept {
    return looks(kind) ? _mm256_or_si256(so_far, looked_at(x)) : so_far;
  }
  ZARRBITS_AVX2_INLINE __m256i seen(__m256i so_far, __m256i x, __m256i y) const noexcept {
    return looks(kind) ? or_all(so_far, looked_at(x), looked_at(y)) : so_far;
  }
  ZARRBITS_AVX2_INLINE __m256i operator()(__m256i x) const noexcept {
    if constexpr (shifts(kind)) {
      x = lane == 64 ? _mm256_srlv_epi64(x, first_) : _mm256_srlv_epi32(x, first_);
    }
    return !looks(kind) || looks_signed(kind) ? _mm256_and_si256(x, mask_) : x;
  }

  ZARRBITS_AVX2_INLINE bool lossless(__m256i accumulated) const noexcept {
    return !looks(kind) || _mm256_testz_si256(accumulated, dropped_);
  }

 private:
  // Short components are shifted in lanes of 32 bits: bits of a neighbour above a component are masked, or zero, or detected.
  static constexpr unsigned lane = width == 64 ? 64 : 32;

  ZARRBITS_AVX2_INLINE __m256i looked_at(__m256i x) const noexcept {
    if constexpr (!looks_signed(kind)) return x;
    if constexpr (width == 8) return _mm256_add_epi8(x, bias_);
    if constexpr (width == 16) return _mm256_add_epi16(x, bias_);
    if constexpr (width == 32) return _mm256_add_epi32(x, bias_);
    return _mm256_add_epi64(x, bias_);
  }

  __m256i bias_, dropped_, mask_, first_;
};

// `wide`: see is_wide().
template <unsigned width, finish method, before prepare, bool wide = false>
class packer {
 public:
  static constexpr bool moves_halves =
      method == finish::of_8_bytes || method == finish::of_16_bytes || method == finish::of_24_bytes;
  static constexpr bool in_pairs = are_pairs(method), carries = method == finish::carry || method == finish::wide_carry;
  static constexpr std::size_t vectors = method == finish::two_stores || method == finish::half_bytes ? 1 : 2;
  static constexpr std::size_t components = vectors * 256 / width, at_once = 4 / vectors;
  static constexpr std::size_t reach = method == finish::of_8_bytes                                     ? 16
                                       : method == finish::of_16_bytes || method == finish::short_pairs ? 32
                                       : method == finish::of_24_bytes                                  ? 48
                                                                                                        : 32 * vectors;
  std::size_t bytes_in() const noexcept { return 32 * vectors; }
  std::size_t bytes_out() const noexcept { return bytes_out_; }

  ZARRBITS_AVX2 explicit packer(const packing& p) noexcept : prepared_(p) {
    const unsigned bits = p.bits;
    const wide_plan& w = method == finish::wide_carry ? wide_plans[64 / width * bits - 59] : wide_plans[0];
    const plan& l = method == finish::wide_carry ? w.common : plans<width>[bits];
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
    if (method == finish::wide_carry)
      for (int v = 0; v < 2; ++v) {
        ninth_[v] = load(w.ninth + 32 * v);
        last_[v] = load(w.last + 4 * v);
        shift_up_[v] = _mm256_sub_epi64(_mm256_set1_epi64x(64), turn_[v]);
      }
    else if (!wide && width != 64)
      for (__m256i& t : turn_) t = _mm256_sub_epi64(_mm256_set1_epi64x(down), t);
    for (int v = 0; v < 2; ++v) {
      even_[v] = load(l.even + 32 * v);
      odd_[v] = load(l.odd + 32 * v);
      carry_[v] = load(l.carry + 32 * v);
    }
    for (int i = 0; i < 4; ++i) start_[i] = l.start[i];
    // bytes of a half (of pairs: of both) are its dwords 0 ... n - 1
    const int n = static_cast<int>(l.start[in_pairs ? 2 : 1] / 4);
    const __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), upper = _mm256_cmpgt_epi32(i, _mm256_set1_epi32(n - 1));
    joined_index_ = _mm256_add_epi32(i, _mm256_and_si256(upper, _mm256_set1_epi32(4 - n)));
  }

  ZARRBITS_AVX2_INLINE __m256i operator()(const std::byte* in, std::byte* out, __m256i accumulated) const noexcept {
    if constexpr (in_pairs) return pair(in, out, accumulated);
    __m256i x = load_once(in);
    if constexpr (vectors == 1) {
      store_halves(out, out + start_[1], halves(lanes(x)));
      return prepared_.seen(accumulated, x);
    } else {
      __m256i y = load_once(in + 32);
      accumulated = prepared_.seen(accumulated, x, y);
      x = lanes(x);
      y = lanes(y);
      if constexpr (method == finish::of_8_bytes || method == finish::of_16_bytes) {
        x = _mm256_or_si256(_mm256_shuffle_epi8(x, even_[0]), _mm256_shuffle_epi8(y, even_[1]));
        if constexpr (method == finish::of_16_bytes) store(out, _mm256_permute4x64_epi64(x, 0xd8));
        else store_half(out, _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 4, 1, 5, 7, 7, 7, 7)));
      } else if constexpr (method == finish::of_24_bytes) {
        store_24_and_24(out, _mm256_shuffle_epi8(x, even_[0]), _mm256_shuffle_epi8(y, even_[0]));
      } else {
        if constexpr (carries) {
          carry(x, y);
        } else {
          x = halves(x);
          y = halves(y);
        }
        store_halves(out, out + start_[1], x);
        store_halves(out + start_[2], out + start_[3], y);
      }
      return accumulated;
    }
  }

  ZARRBITS_AVX2_INLINE bool lossless(__m256i accumulated) const noexcept { return prepared_.lossless(accumulated); }

 private:
  ZARRBITS_AVX2_INLINE __m256i pair(const std::byte* in, std::byte* out, __m256i accumulated) const noexcept {
    const __m256i u = load_halves(in, in + 32), v = load_halves(in + 16, in + 48);
    const __m256i x = down(lanes(u)), y = down(lanes(v));
    const __m256i w = _mm256_or_si256(_mm256_shuffle_epi8(x, even_[0]), _mm256_shuffle_epi8(y, even_[1]));
    if constexpr (method == finish::short_pairs) {
      store(out, _mm256_permutevar8x32_epi32(w, joined_index_));
    } else {
      const __m256i z = _mm256_shuffle_epi8(y, odd_[1]);
      store(out, _mm256_permute2x128_si256(w, z, 0x20));
      store(out + start_[2], _mm256_permute2x128_si256(w, z, 0x31));
    }
    return prepared_.seen(accumulated, u, v);
  }

  ZARRBITS_AVX2_INLINE __m256i down(__m256i x) const noexcept { return width == 64 ? x : _mm256_srlv_epi64(x, down_); }

  // Joins components in lanes of 32 bits, or of 64 bits with `down_` empty bits below them.
  ZARRBITS_AVX2_INLINE __m256i lanes(__m256i x) const noexcept {
    x = prepared_(x);
    if constexpr (width == 8) x = _mm256_maddubs_epi16(weights8_, x);
    if constexpr (width == 8 || (width == 16 && !wide)) x = _mm256_madd_epi16(x, weights16_);
    if constexpr (width == 16 && wide)  // 15 bits: the weight would be -2^15
      x = _mm256_srli_epi32(_mm256_mullo_epi16(x, _mm256_set1_epi32(0x10002)), 1);
    if constexpr (width < 64 && !moves_halves) x = _mm256_sllv_epi32(x, up_);
    return x;
  }

  // Moves 64-bit lanes to their bits.
  ZARRBITS_AVX2_INLINE __m256i turned(__m256i x, int v) const noexcept {
    if constexpr (width == 64) return _mm256_sllv_epi64(x, turn_[v]);
    // down and up again: the lane's bits and its turn do not fit below together
    if constexpr (wide) return _mm256_sllv_epi64(_mm256_srlv_epi64(x, down_), turn_[v]);
    return _mm256_srlv_epi64(x, turn_[v]);
  }

  // Turns such lanes into bytes of the halves, which may end inside a byte.
  ZARRBITS_AVX2_INLINE __m256i bytes(__m256i x, int v) const noexcept {
    return _mm256_or_si256(_mm256_shuffle_epi8(x, even_[v]), _mm256_shuffle_epi8(x, odd_[v]));
  }

  // Like bytes(), for lanes that may have a ninth byte (at most 16 bytes per half: bytes after them are carried).
  ZARRBITS_AVX2_INLINE __m256i far_bytes(__m256i x, int v) const noexcept {
    const __m256i eight = _mm256_sllv_epi64(x, turn_[v]), upper = _mm256_srlv_epi64(x, shift_up_[v]);
    return _mm256_or_si256(bytes(eight, v), _mm256_shuffle_epi8(upper, ninth_[v]));
  }

  // Like bytes(), for lanes whose halves are whole bytes.
  ZARRBITS_AVX2_INLINE __m256i halves(__m256i x) const noexcept {
    return method == finish::half_bytes ? bytes(turned(x, 0), 0) : _mm256_shuffle_epi8(down(x), even_[0]);
  }

  // Turns two vectors of lanes into bytes of the halves; one half ends and the next begins in the same byte.
  ZARRBITS_AVX2_INLINE void carry(__m256i& x, __m256i& y) const noexcept {
    __m256i last_x, last_y;
    if constexpr (method == finish::wide_carry) {
      x = down(x);
      y = down(y);
      last_x = _mm256_srlv_epi64(x, last_[0]);
      last_y = _mm256_srlv_epi64(y, last_[1]);
      x = far_bytes(x, 0);
      y = far_bytes(y, 1);
    } else {
      last_x = turned(x, 0);
      last_y = turned(y, 1);
      x = bytes(last_x, 0);
      y = bytes(last_y, 1);
    }
    const __m256i from_x = _mm256_shuffle_epi8(last_x, carry_[0]), from_y = _mm256_shuffle_epi8(last_y, carry_[1]);
    x = _mm256_or_si256(x, _mm256_permute2x128_si256(from_x, from_x, 0x08));
    y = _mm256_or_si256(y, _mm256_permute2x128_si256(from_x, from_y, 0x21));
  }

  ZARRBITS_AVX2_INLINE void store_24_and_24(std::byte* out, __m256i x, __m256i y) const noexcept {
    y = _mm256_permutevar8x32_epi32(y, _mm256_setr_epi32(2, 4, 5, 6, 7, 7, 0, 1));
    store(out, _mm256_blend_epi32(_mm256_permutevar8x32_epi32(x, joined_index_), y, 0xc0));
    store_half(out + 32, y);
  }

  preparation<width, prepare> prepared_;
  __m256i weights8_, weights16_, up_, down_, joined_index_;
  __m256i turn_[2], even_[2], odd_[2], carry_[2], ninth_[2], shift_up_[2], last_[2];
  std::size_t bytes_out_, start_[4];  // where halves begin
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

  ZARRBITS_AVX2_INLINE __m256i operator()(const std::byte* in, std::byte* out, __m256i accumulated) const noexcept {
    const __m256i a = load_once(in), b = load_once(in + 32);
    accumulated = prepared_.seen(accumulated, a, b);
    if constexpr (bits == 4) {
      store(out, _mm256_permute4x64_epi64(joined(a, b), 0xd8));
      return accumulated;
    } else {
      const __m256i c = load_once(in + 64), d = load_once(in + 96), weights = _mm256_set1_epi16(0x1001);
      const __m256i x =
          _mm256_packus_epi16(_mm256_maddubs_epi16(weights, joined(a, b)), _mm256_maddubs_epi16(weights, joined(c, d)));
      store(out, _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
      return prepared_.seen(accumulated, c, d);
    }
  }

  ZARRBITS_AVX2_INLINE bool lossless(__m256i accumulated) const noexcept { return prepared_.lossless(accumulated); }

 private:
  ZARRBITS_AVX2_INLINE __m256i joined(__m256i a, __m256i b) const noexcept {
    const __m256i weights = _mm256_set1_epi16(1 | 1 << (bits + 8));
    return _mm256_packus_epi16(_mm256_maddubs_epi16(weights, prepared_(a)), _mm256_maddubs_epi16(weights, prepared_(b)));
  }

  preparation<8, prepare> prepared_;
};

// Step<what>: the step with this preparation of components.
template <template <before> class Step>
bool pack(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return with_preparation(p, [&](auto what) { return encode_steps<Step<what()>>(p, in, out, n); });
}

template <unsigned width, finish method, bool wide>
struct laned {
  template <before prepare>
  using step = packer<width, method, prepare, wide>;
};
template <unsigned bits>
struct of_8 {
  template <before prepare>
  using step = packer_8<bits, prepare>;
};

template <unsigned width, finish method, bool wide = false>
bool pack_lanes(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return pack<laned<width, method, wide>::template step>(p, in, out, n);
}

template <unsigned width>
bool pack_from_bytes(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;

template <unsigned width>
bool pack_lanes(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  switch (finish_of(width, p.bits)) {
    case finish::of_8_bytes:
      if constexpr (width != 8) return pack_lanes<width, finish::of_8_bytes>(p, in, out, n);
      break;
    case finish::of_16_bytes:
      if constexpr (width != 8) return pack_lanes<width, finish::of_16_bytes>(p, in, out, n);
      break;
    case finish::of_24_bytes: return pack_lanes<width, finish::of_24_bytes>(p, in, out, n);
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
        if (is_wide(width, p.bits)) return pack_lanes<width, finish::half_bytes, true>(p, in, out, n);
      if constexpr (width >= 16) return pack_lanes<width, finish::half_bytes>(p, in, out, n);
      break;
    case finish::carry:
      if constexpr (width == 32)
        if (is_wide(width, p.bits)) return pack_lanes<width, finish::carry, true>(p, in, out, n);
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

template <unsigned width>
bool encode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < min_components) return portable_kernels.encode[log2_size(width / 8)](p, in, out, n);
  if constexpr (width == 8) {
    if (p.bits == 1) return encode_bool(p, in, out, n);
    if (p.bits == 2) return pack<of_8<2>::step>(p, in, out, n);
    if (p.bits == 4) return pack<of_8<4>::step>(p, in, out, n);
  }
  return pack_lanes<width>(p, in, out, n);
}

// Few bits of wide components, of which half a vector would be less than a byte, or little more: they are first turned into
// bytes. The two steps together refuse the same values as one would.
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
    if (!pack_lanes<width>(to_bytes, in + i * (width / 8), block, count) || !encode<8>(bytes, block, out, count)) return false;
  }
  return true;
}

}  // namespace

bool encode8(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<8>(p, in, out, n); }
bool encode16(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<16>(p, in, out, n); }
bool encode32(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<32>(p, in, out, n); }
bool encode64(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<64>(p, in, out, n); }

}  // namespace zarrbits::detail::avx2

#endif
