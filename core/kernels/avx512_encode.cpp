// SPDX-License-Identifier: BSL-1.0
//
// Encoding with AVX-512. 16-bit components, 11 bits kept:
//
//   |.....ddddddddddd|.....ccccccccccc|.....bbbbbbbbbbb|.....aaaaaaaaaaa|   a lane of 64 bits
//   |..........dddddddddddccccccccccc|..........bbbbbbbbbbbaaaaaaaaaaa|     neighbours joined: vpmaddwd by (1, 2^11)
//   |....................dddddddddddcccccccccccbbbbbbbbbbbaaaaaaaaaaa|     and again: vpsllvd up in the even lanes, vpsrlvq down
//   |................hhhhhhhhhhhgggggggggggfffffffffffeeeeeeeeeee....|     44 bits: the next lane begins in the middle of a byte
//
// Then vpermb collects the bytes of the even lanes and of the odd ones, which are or-ed because they share a byte.
//
// Vectors are stored whole; each overwrites the unused bytes of the one before. In the cache this costs less than masked stores.
// But lines are prefetched, because a store that waits for its line blocks all later ones. If two or four vectors make exactly
// one, the second vpermb fills what the first one left, and so on. 8-bit components, 4 bits kept:
//
//   |................|aaaaaaaaaaaaaaaa|    vpermb
//   |bbbbbbbbbbbbbbbb|aaaaaaaaaaaaaaaa|    vpermb of the next vector, under a mask
//
#include "core/kernels/avx512.hpp"

#ifdef ZARRBITS_X86_KERNELS

namespace zarrbits::detail::avx512 {

namespace {

// vpermb indices of the bytes of even lanes, of odd lanes, and of bits that left their lane at the top.
struct encode_plan {
  alignas(64) std::uint8_t even[64];
  alignas(64) std::uint8_t odd[64];
  alignas(64) std::uint8_t over[64];
  alignas(64) std::uint64_t turn[8];                // bit of its first byte at which a lane begins
  std::uint64_t even_bytes, odd_bytes, over_bytes;  // bytes of the result that receive something
};

constexpr encode_plan make_encode_plan(unsigned lane_bytes, unsigned m) {
  encode_plan p{};
  for (unsigned lane = 0; lane < 64 / lane_bytes; ++lane) {
    const unsigned first = lane * m, begin = first / 8, end = (first + m + 7) / 8, turn = first % 8;
    if (lane_bytes == 8) p.turn[lane] = turn;
    for (unsigned i = begin; i < end; ++i) {
      const bool over = i - begin == 8, odd = !over && m % 8 != 0 && lane % 2 != 0;
      (over ? p.over : odd ? p.odd : p.even)[i] = static_cast<std::uint8_t>(lane * lane_bytes + (over ? 0 : i - begin));
      (over ? p.over_bytes : odd ? p.odd_bytes : p.even_bytes) |= std::uint64_t{1} << i;
    }
  }
  return p;
}

// For components of `width` bits: true if a 32-bit lane is whole bytes, so that it need not be joined with the next.
constexpr bool short_lanes(unsigned width, unsigned bits) { return width < 64 && 32 / width * bits % 8 == 0; }

template <unsigned width>
constexpr auto make_encode_plans() {
  std::array<encode_plan, width> plans{};
  for (unsigned bits = 1; bits < width; ++bits)
    plans[bits] = short_lanes(width, bits) ? make_encode_plan(4, 32 / width * bits) : make_encode_plan(8, 64 / width * bits);
  return plans;
}

template <unsigned width>
constexpr auto encode_plans = make_encode_plans<width>();

using avx2::before, avx2::looks, avx2::looks_signed, avx2::shifts;

// halves, quarters: lanes of whole bytes; two or four vectors make one.
enum class lanes { short_bytes, halves, quarters, bytes, bits, bits_over };

template <unsigned width, before prepare>
class preparation {
 public:
  ZARRBITS_AVX512 explicit preparation(const packing& p) noexcept {
    const loss loss_test = what_is_lost(p);
    bias_ = broadcast<width>(loss_test.bias);
    dropped_ = broadcast<width>(loss_test.dropped);
    mask_ = broadcast<width>(low_bits(p.bits));
    first_ = count(p.first_bit);
  }

  ZARRBITS_AVX512_INLINE __m512i operator()(__m512i x, __m512i& accumulated) const noexcept {
    if constexpr (looks(prepare)) accumulated = looks_signed(prepare) ? add<width>(x, bias_) : x;
    if constexpr (shifts(prepare)) x = shift_right<width>(x, first_);
    if constexpr (looks_signed(prepare) || !looks(prepare)) x = _mm512_and_si512(x, mask_);
    return x;
  }

  // `accumulated` of all components or-ed.
  ZARRBITS_AVX512_INLINE bool lossless(__m512i accumulated) const noexcept {
    return !looks(prepare) || _mm512_test_epi64_mask(accumulated, dropped_) == 0;
  }

 private:
  __m512i bias_, dropped_, mask_;
  __m128i first_;
};

// Loads components to encode. They are used twice, and a compiler may otherwise load them twice.
ZARRBITS_AVX512_INLINE __m512i load_once(const std::byte* in) noexcept {
  __m512i x = load(in);
  asm("" : "+v"(x));
  return x;
}

template <unsigned width, lanes lane_kind, before prepare>
class packer {
 public:
  static constexpr unsigned components = 512 / width;
  static constexpr std::size_t reach = 64;
  static constexpr unsigned merged = lane_kind == lanes::halves     ? 2
                                     : lane_kind == lanes::quarters ? 4
                                                                    : 1;  // vectors per stored vector

  ZARRBITS_AVX512 explicit packer(const packing& p) noexcept : prepared_(p) {
    const unsigned bits = p.bits;
    const encode_plan& l = encode_plans<width>[bits];
    weights8_ = _mm512_set1_epi16(static_cast<short>(1 | 1 << (bits % 8 + 8)));
    const unsigned pair = width == 8 ? 2 * bits : bits % 16, quad = (width == 8 ? 4 : width == 16 ? 2 : 1) * bits;
    weights16_ = _mm512_set1_epi32(static_cast<int>(1 | 1u << (pair + 16)));
    up_ = _mm512_set1_epi64(32 - quad % 32);
    const unsigned down = width == 64 ? 0 : 32 - quad % 32;
    turn_ = load(l.turn);
    // a lane's bits that may have to go further up than down are moved down first
    down_ = _mm512_set1_epi64(down);
    if (lane_kind == lanes::bits && width != 64) turn_ = _mm512_sub_epi64(down_, turn_);
    if (lane_kind == lanes::bits_over) over_ = _mm512_sub_epi64(_mm512_set1_epi64(64), turn_);
    even_ = load(l.even);
    // the same bytes again for the other vectors
    if (lane_kind == lanes::halves) even_ = _mm512_broadcast_i64x4(_mm512_castsi512_si256(even_));
    if (lane_kind == lanes::quarters) even_ = _mm512_broadcast_i32x4(_mm512_castsi512_si128(even_));
    odd_ = load(l.odd);
    over_index_ = load(l.over);
    even_bytes_ = l.even_bytes;
    odd_bytes_ = l.odd_bytes;
    over_bytes_ = l.over_bytes;
  }

  ZARRBITS_AVX512_INLINE __m512i operator()(__m512i x, __m512i& accumulated) const noexcept {
    x = joined(x, accumulated);
    if constexpr (is_short) return _mm512_permutexvar_epi8(even_, x);
    if constexpr (width < 64) x = _mm512_sllv_epi32(x, up_);
    if constexpr (lane_kind == lanes::bytes) return _mm512_permutexvar_epi8(even_, width == 64 ? x : _mm512_srlv_epi64(x, down_));
    if constexpr (lane_kind == lanes::bits) {
      x = width == 64 ? _mm512_sllv_epi64(x, turn_) : _mm512_srlv_epi64(x, turn_);
      return _mm512_or_si512(_mm512_maskz_permutexvar_epi8(even_bytes_, even_, x),
                             _mm512_maskz_permutexvar_epi8(odd_bytes_, odd_, x));
    }
    if constexpr (width != 64) x = _mm512_srlv_epi64(x, down_);
    const __m512i over = _mm512_srlv_epi64(x, over_);
    x = _mm512_sllv_epi64(x, turn_);
    return _mm512_ternarylogic_epi64(_mm512_maskz_permutexvar_epi8(even_bytes_, even_, x),
                                     _mm512_maskz_permutexvar_epi8(odd_bytes_, odd_, x),
                                     _mm512_maskz_permutexvar_epi8(over_bytes_, over_index_, over), 0xfe);
  }

  // Merges four vectors into the 64 bytes, or twice 64, that they make.
  ZARRBITS_AVX512_INLINE void merge(const std::byte* in, std::byte* out, __m512i& a, __m512i& b, __m512i& c,
                                    __m512i& d) const noexcept {
    const __m512i w = joined(load_once(in), a), x = joined(load_once(in + 64), b);
    const __m512i y = joined(load_once(in + 128), c), z = joined(load_once(in + 192), d);
    if constexpr (merged == 2) {
      store(out, _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(even_, w), ~bytes(32), even_, x));
      store(out + 64, _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(even_, y), ~bytes(32), even_, z));
    } else {
      const __m512i v = _mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(even_, w), bytes(32) & ~bytes(16), even_, x);
      store(out, _mm512_mask_permutexvar_epi8(_mm512_mask_permutexvar_epi8(v, bytes(48) & ~bytes(32), even_, y), ~bytes(48),
                                              even_, z));
    }
  }

  ZARRBITS_AVX512_INLINE static void store(std::byte* out, __m512i v) noexcept { _mm512_storeu_si512(out, v); }
  ZARRBITS_AVX512_INLINE bool lossless(__m512i accumulated) const noexcept { return prepared_.lossless(accumulated); }

 private:
  static constexpr bool is_short = lane_kind == lanes::short_bytes || merged != 1;

  // Joins neighbours in lanes of 32 bits; components of 32 bits or more stay.
  ZARRBITS_AVX512_INLINE __m512i joined(__m512i x, __m512i& accumulated) const noexcept {
    x = prepared_(x, accumulated);
    if constexpr (width == 8) x = _mm512_maddubs_epi16(weights8_, x);
    if constexpr (width == 8) x = _mm512_madd_epi16(x, weights16_);
    if constexpr (width == 16 && lane_kind != lanes::bits_over) x = _mm512_madd_epi16(x, weights16_);
    if constexpr (width == 16 && lane_kind == lanes::bits_over)  // 15 bits: the weight would be -2^15
      x = _mm512_srli_epi32(_mm512_mullo_epi16(x, _mm512_set1_epi32(0x00010002)), 1);
    return x;
  }

  preparation<width, prepare> prepared_;
  __m512i weights8_, weights16_, up_, down_, turn_, over_, even_, odd_, over_index_;
  __mmask64 even_bytes_, odd_bytes_, over_bytes_;
};

// One bit: vptestmb makes a mask of it. For the other bit order, the bytes of each group of eight are reversed first.
template <bool msb_first, before prepare>
class packer_1 {
 public:
  static constexpr unsigned components = 64;
  static constexpr std::size_t reach = 8;
  static constexpr unsigned merged = 1;

  ZARRBITS_AVX512 explicit packer_1(const packing& p) noexcept : prepared_(p) {
    const bool any_nonzero = p.is_bool && p.nonzero_is_true;
    bit_ = _mm512_set1_epi8(static_cast<char>(any_nonzero ? 0xff : 1 << p.first_bit));
  }

  ZARRBITS_AVX512_INLINE __m512i operator()(__m512i x, __m512i& accumulated) const noexcept {
    return _mm512_castsi128_si512(_mm_cvtsi64_si128(static_cast<long long>(mask(x, accumulated))));
  }
  ZARRBITS_AVX512_INLINE __mmask64 mask(__m512i x, __m512i& accumulated) const noexcept {
    prepared_(x, accumulated);
    if constexpr (msb_first)
      x = _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8)));
    return _mm512_test_epi8_mask(x, bit_);
  }
  ZARRBITS_AVX512_INLINE bool lossless(__m512i accumulated) const noexcept { return prepared_.lossless(accumulated); }

 private:
  preparation<8, prepare> prepared_;
  __m512i bit_;
};

template <class Step>
ZARRBITS_AVX512_INLINE void encode_vector(const Step& s, const std::byte* in, std::byte* out, __m512i& accumulated) noexcept {
  if constexpr (Step::reach == 8) {
    const __mmask64 m = s.mask(load_once(in), accumulated);
    std::memcpy(out, &m, 8);
  } else {
    Step::store(out, s(load_once(in), accumulated));
  }
}

template <class Step>
ZARRBITS_AVX512 bool encode_steps(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const Step s(p);
  __m512i accumulated = _mm512_setzero_si512();
  const std::size_t o = Step::components * p.bits / 8, size = n / 8 * p.bits + (n % 8 * p.bits + 7) / 8;
  std::size_t inside = avx2::steps_inside(n / Step::components, o, Step::reach, size);
  n -= inside * Step::components;
  const std::size_t distance = avx2::prefetch_pays() ? avx2::prefetch_distance : 0;
  // four at a time: sums in a chain would take 2 cycles each on Zen 5
  for (; inside >= 4; inside -= 4, in += 256, out += 4 * o) {
    for (std::size_t line = 0; line < 4 * Step::reach / Step::merged; line += 64) __builtin_prefetch(out + distance + line, 1);
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    if constexpr (Step::merged != 1) {
      s.merge(in, out, a, b, c, d);
    } else {
      encode_vector(s, in, out, a);
      encode_vector(s, in + 64, out + o, b);
      encode_vector(s, in + 128, out + 2 * o, c);
      encode_vector(s, in + 192, out + 3 * o, d);
    }
    accumulated = _mm512_or_si512(_mm512_ternarylogic_epi64(a, b, c, 0xfe), _mm512_or_si512(d, accumulated));
  }
  for (; inside != 0; --inside, in += 64, out += o) {
    __m512i a = _mm512_setzero_si512();
    encode_vector(s, in, out, a);
    accumulated = _mm512_or_si512(accumulated, a);
  }
  while (n != 0) {
    const std::size_t m = std::min<std::size_t>(n, Step::components);
    __m512i a = _mm512_setzero_si512();
    const __m512i x = s(_mm512_maskz_loadu_epi8(bytes(m * p.size), in), a);
    _mm512_mask_storeu_epi8(out, bytes((m * p.bits + 7) / 8), x);
    accumulated = _mm512_or_si512(accumulated, a);
    n -= m;
    in += 64;
    out += o;
  }
  return s.lossless(accumulated);
}

template <template <before> class Step>
bool pack(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return avx2::with_preparation(p, [&](auto what) { return encode_steps<Step<what()>>(p, in, out, n); });
}

template <unsigned width, lanes lane_kind>
struct laned {
  template <before prepare>
  using step = packer<width, lane_kind, prepare>;
};

template <unsigned width, lanes lane_kind>
bool pack_lanes(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return pack<laned<width, lane_kind>::template step>(p, in, out, n);
}

template <before prepare>
using packer_lsb = packer_1<false, prepare>;

template <unsigned width>
bool encode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const unsigned m = 64 / width * p.bits;
  if constexpr (width >= 32) {
    // a byte of the result would combine more than two lanes
    if (m < 4 || m == 5) return (width == 32 ? avx2::encode32 : avx2::encode64)(p, in, out, n);
  }
  if constexpr (width == 8) {
    if (p.bits == 1) return pack<packer_lsb>(p, in, out, n);
  }
  if (p.bits == width / 2) return pack_lanes<width, lanes::halves>(p, in, out, n);
  if (p.bits == width / 4) return pack_lanes<width, lanes::quarters>(p, in, out, n);
  if constexpr (width != 64) {
    if (short_lanes(width, p.bits)) return pack_lanes<width, lanes::short_bytes>(p, in, out, n);
  }
  if (m % 8 == 0) return pack_lanes<width, lanes::bytes>(p, in, out, n);
  if constexpr (width != 8) {
    // the largest turn is 8 less the greatest common divisor of 8 and m
    const unsigned turn = m % 2 ? 7 : m % 4 ? 6 : 4;
    if (m + turn > 64 || (width != 64 && m / 2 + turn > 32)) return pack_lanes<width, lanes::bits_over>(p, in, out, n);
  }
  return pack_lanes<width, lanes::bits>(p, in, out, n);
}

}  // namespace

bool encode8(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<8>(p, in, out, n); }
bool encode16(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<16>(p, in, out, n); }
bool encode32(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<32>(p, in, out, n); }
bool encode64(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<64>(p, in, out, n); }

bool encode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return p.msb_first ? encode_steps<packer_1<true, before::look>>(p, in, out, n)
                     : encode_steps<packer_1<false, before::look>>(p, in, out, n);
}

}  // namespace zarrbits::detail::avx512

#endif
