// SPDX-License-Identifier: BSL-1.0
//
// Encoding with AVX-512. 16-bit components, 11 bits kept:
//
//   |.....ddddddddddd|.....ccccccccccc|.....bbbbbbbbbbb|.....aaaaaaaaaaa|   a lane of 64 bits
//   |..........dddddddddddccccccccccc|..........bbbbbbbbbbbaaaaaaaaaaa|     neighbours joined: vpmaddwd by (1, 2^11)
//   |....................dddddddddddcccccccccccbbbbbbbbbbbaaaaaaaaaaa|     and again: vpsllvd up in the even lanes, vpsrlvq down
//   |................hhhhhhhhhhhgggggggggggfffffffffffeeeeeeeeeee....|     44 bits: the next lane begins in the middle of a byte
//
// and vpermb brings the bytes together, those of the even lanes and those of the odd ones, or-ed since they share a byte.
//
#include "core/kernels/avx512.hpp"

#ifdef ZARRBITS_X86_KERNELS

namespace zarrbits::detail::avx512 {

namespace {

// vpermb indices of the bytes of even lanes, of odd lanes, and of what left its lane at the top.
struct encode_plan {
  alignas(64) std::uint8_t even[64];
  alignas(64) std::uint8_t odd[64];
  alignas(64) std::uint8_t over[64];
  alignas(64) std::uint64_t turn[8];                // bit of its first byte at which a lane begins
  std::uint64_t even_bytes, odd_bytes, over_bytes;  // bytes of the result that get something
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

// Components of `width` bits: is a 32-bit lane whole bytes, so that it need not be joined with the next?
constexpr bool short_lanes(unsigned width, unsigned bits) {
  return width < 64 && 32 / width * bits % 8 == 0;
}

template <unsigned width>
constexpr auto make_encode_plans() {
  std::array<encode_plan, width> plans{};
  for (unsigned bits = 1; bits < width; ++bits)
    plans[bits] = short_lanes(width, bits) ? make_encode_plan(4, 32 / width * bits) : make_encode_plan(8, 64 / width * bits);
  return plans;
}

template <unsigned width>
constexpr auto encode_plans = make_encode_plans<width>();

// What is done with a component before it is joined. Unsigned components need no mask when they are checked: any bit that it
// would take away is an error, and found.
enum class before { look, look_and_shift, look_signed, shift_and_mask };
enum class lanes { short_bytes, bytes, bits, bits_over };

template <unsigned width, before prepare>
class preparation {
 public:
  ZARRBITS_AVX512 explicit preparation(const packing& p) noexcept {
    const loss what = what_is_lost(p);
    bias_ = broadcast<width>(what.bias);
    dropped_ = broadcast<width>(what.dropped);
    mask_ = broadcast<width>(low_bits(p.bits));
    first_ = count(p.first_bit);
  }

  ZARRBITS_AVX512_INLINE __m512i operator()(__m512i x, __m512i& seen) const noexcept {
    if constexpr (looks) seen = prepare == before::look_signed ? add<width>(x, bias_) : x;
    if constexpr (prepare != before::look) x = shift_right<width>(x, first_);
    if constexpr (prepare == before::look_signed || !looks) x = _mm512_and_si512(x, mask_);
    return x;
  }

  // `seen` of all components or-ed.
  ZARRBITS_AVX512_INLINE bool lossless(__m512i seen) const noexcept {
    return !looks || _mm512_test_epi64_mask(seen, dropped_) == 0;
  }

 private:
  static constexpr bool looks = prepare != before::shift_and_mask;

  __m512i bias_, dropped_, mask_;
  __m128i first_;
};

template <unsigned width, lanes how, before prepare>
class packer {
 public:
  static constexpr unsigned components = 512 / width;
  static constexpr std::size_t reach = 64;

  ZARRBITS_AVX512 explicit packer(const packing& p) noexcept : prepared_(p) {
    const unsigned bits = p.bits;
    const encode_plan& l = encode_plans<width>[bits];
    weights8_ = _mm512_set1_epi16(static_cast<short>(1 | 1 << (bits % 8 + 8)));
    const unsigned pair = width == 8 ? 2 * bits : bits % 16, quad = (width == 8 ? 4 : width == 16 ? 2 : 1) * bits;
    weights16_ = _mm512_set1_epi32(static_cast<int>(1 | 1u << (pair + 16)));
    up_ = _mm512_set1_epi64(32 - quad % 32);
    const unsigned down = width == 64 ? 0 : 32 - quad % 32;
    turn_ = load(l.turn);
    // where the lane's bits may have to go further up than down they go down first
    down_ = _mm512_set1_epi64(down);
    if (how == lanes::bits && width != 64) turn_ = _mm512_sub_epi64(down_, turn_);
    if (how == lanes::bits_over) over_ = _mm512_sub_epi64(_mm512_set1_epi64(64), turn_);
    even_ = load(l.even);
    odd_ = load(l.odd);
    over_index_ = load(l.over);
    even_bytes_ = l.even_bytes;
    odd_bytes_ = l.odd_bytes;
    over_bytes_ = l.over_bytes;
  }

  ZARRBITS_AVX512_INLINE __m512i operator()(__m512i x, __m512i& seen) const noexcept {
    x = prepared_(x, seen);
    if constexpr (width == 8) x = _mm512_maddubs_epi16(weights8_, x);
    if constexpr (width == 8) x = _mm512_madd_epi16(x, weights16_);
    if constexpr (width == 16 && how != lanes::bits_over) x = _mm512_madd_epi16(x, weights16_);
    if constexpr (width == 16 && how == lanes::bits_over)  // 15 bits: the weight would be -2^15
      x = _mm512_srli_epi32(_mm512_mullo_epi16(x, _mm512_set1_epi32(0x00010002)), 1);
    if constexpr (width < 64 && how != lanes::short_bytes) x = _mm512_sllv_epi32(x, up_);
    if constexpr (how == lanes::short_bytes) return _mm512_permutexvar_epi8(even_, x);
    if constexpr (how == lanes::bytes) return _mm512_permutexvar_epi8(even_, width == 64 ? x : _mm512_srlv_epi64(x, down_));
    if constexpr (how == lanes::bits) {
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

  ZARRBITS_AVX512_INLINE static void store(std::byte* out, __m512i v) noexcept { _mm512_storeu_si512(out, v); }
  ZARRBITS_AVX512_INLINE bool lossless(__m512i seen) const noexcept { return prepared_.lossless(seen); }

 private:
  preparation<width, prepare> prepared_;
  __m512i weights8_, weights16_, up_, down_, turn_, over_, even_, odd_, over_index_;
  __mmask64 even_bytes_, odd_bytes_, over_bytes_;
};

// 8-bit components, 4 or 2 bits kept: the lanes that the ladder ends with hold one byte, and there is an instruction for that.
template <unsigned bits, before prepare>
class packer_8 {
 public:
  static constexpr unsigned components = 64;
  static constexpr std::size_t reach = 8 * bits;

  ZARRBITS_AVX512 explicit packer_8(const packing& p) noexcept : prepared_(p) {}

  ZARRBITS_AVX512_INLINE __m512i operator()(__m512i x, __m512i& seen) const noexcept {
    x = _mm512_maddubs_epi16(_mm512_set1_epi16(1 | 1 << (bits + 8)), prepared_(x, seen));
    if constexpr (bits == 4) return _mm512_castsi256_si512(_mm512_cvtepi16_epi8(x));
    return _mm512_castsi128_si512(_mm512_cvtepi32_epi8(_mm512_madd_epi16(x, _mm512_set1_epi32(0x00100001))));
  }

  ZARRBITS_AVX512_INLINE static void store(std::byte* out, __m512i v) noexcept {
    if constexpr (bits == 4)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_castsi512_si256(v));
    else
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_castsi512_si128(v));
  }
  ZARRBITS_AVX512_INLINE bool lossless(__m512i seen) const noexcept { return prepared_.lossless(seen); }

 private:
  preparation<8, prepare> prepared_;
};

// One bit: vptestmb makes a mask of it. From the other end of the byte: the bytes of each eight are reversed before.
template <bool msb_first, before prepare>
class packer_1 {
 public:
  static constexpr unsigned components = 64;
  static constexpr std::size_t reach = 8;

  ZARRBITS_AVX512 explicit packer_1(const packing& p) noexcept : prepared_(p) {
    const bool any = p.is_bool && p.nonzero_is_true;
    bit_ = _mm512_set1_epi8(static_cast<char>(any ? 0xff : 1 << p.first_bit));
  }

  ZARRBITS_AVX512_INLINE __m512i operator()(__m512i x, __m512i& seen) const noexcept {
    return _mm512_castsi128_si512(_mm_cvtsi64_si128(static_cast<long long>(mask(x, seen))));
  }
  ZARRBITS_AVX512_INLINE __mmask64 mask(__m512i x, __m512i& seen) const noexcept {
    prepared_(x, seen);
    if constexpr (msb_first)
      x = _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8)));
    return _mm512_test_epi8_mask(x, bit_);
  }
  ZARRBITS_AVX512_INLINE bool lossless(__m512i seen) const noexcept { return prepared_.lossless(seen); }

 private:
  preparation<8, prepare> prepared_;
  __m512i bit_;
};

// Components to be encoded. They are used twice, and a compiler may load them twice then.
ZARRBITS_AVX512_INLINE __m512i load_once(const std::byte* in) noexcept {
  __m512i x = load(in);
  asm("" : "+v"(x));
  return x;
}

template <class Step>
ZARRBITS_AVX512_INLINE void encode_vector(const Step& s, const std::byte* in, std::byte* out, __m512i& seen) noexcept {
  if constexpr (Step::reach == 8) {
    const __mmask64 m = s.mask(load_once(in), seen);
    std::memcpy(out, &m, 8);
  } else {
    Step::store(out, s(load_once(in), seen));
  }
}

template <class Step>
ZARRBITS_AVX512 bool encode_steps(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const Step s(p);
  __m512i seen = _mm512_setzero_si512();
  const std::size_t o = Step::components * p.bits / 8, size = n / 8 * p.bits + (n % 8 * p.bits + 7) / 8;
  std::size_t inside = avx2::steps_inside(n / Step::components, o, Step::reach, size);
  n -= inside * Step::components;
  // four at a time: sums in a chain would take 2 cycles each on Zen 5
  for (; inside >= 4; inside -= 4, in += 256, out += 4 * o) {
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    encode_vector(s, in, out, a);
    encode_vector(s, in + 64, out + o, b);
    encode_vector(s, in + 128, out + 2 * o, c);
    encode_vector(s, in + 192, out + 3 * o, d);
    seen = _mm512_or_si512(_mm512_ternarylogic_epi64(a, b, c, 0xfe), _mm512_or_si512(d, seen));
  }
  for (; inside != 0; --inside, in += 64, out += o) {
    __m512i a = _mm512_setzero_si512();
    encode_vector(s, in, out, a);
    seen = _mm512_or_si512(seen, a);
  }
  while (n != 0) {
    const std::size_t m = std::min<std::size_t>(n, Step::components);
    __m512i a = _mm512_setzero_si512();
    const __m512i x = s(_mm512_maskz_loadu_epi8(bytes(m * p.size), in), a);
    _mm512_mask_storeu_epi8(out, bytes((m * p.bits + 7) / 8), x);
    seen = _mm512_or_si512(seen, a);
    n -= m;
    in += 64;
    out += o;
  }
  return s.lossless(seen);
}

template <template <before> class Step>
bool pack(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (!is_checked(p)) return encode_steps<Step<before::shift_and_mask>>(p, in, out, n);
  if (p.is_signed) return encode_steps<Step<before::look_signed>>(p, in, out, n);
  if (p.first_bit != 0) return encode_steps<Step<before::look_and_shift>>(p, in, out, n);
  return encode_steps<Step<before::look>>(p, in, out, n);
}

template <unsigned width>
struct packers {
  template <before prepare>
  using short_bytes = packer<width, lanes::short_bytes, prepare>;
  template <before prepare>
  using bytes = packer<width, lanes::bytes, prepare>;
  template <before prepare>
  using bits = packer<width, lanes::bits, prepare>;
  template <before prepare>
  using bits_over = packer<width, lanes::bits_over, prepare>;
};

template <before prepare>
using packer_8_to_2 = packer_8<2, prepare>;
template <before prepare>
using packer_8_to_4 = packer_8<4, prepare>;
template <before prepare>
using packer_lsb = packer_1<false, prepare>;

template <unsigned width>
bool encode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const unsigned m = 64 / width * p.bits;
  if constexpr (width >= 32) {
    // a byte of the result would be made of more than two lanes
    if (m < 4 || m == 5) return (width == 32 ? avx2::encode32 : avx2::encode64)(p, in, out, n);
  }
  if constexpr (width == 8) {
    if (p.bits == 1) return pack<packer_lsb>(p, in, out, n);
    if (p.bits == 2) return pack<packer_8_to_2>(p, in, out, n);
    if (p.bits == 4) return pack<packer_8_to_4>(p, in, out, n);
  }
  if constexpr (width != 64) {
    if (short_lanes(width, p.bits)) return pack<packers<width>::template short_bytes>(p, in, out, n);
  }
  if (m % 8 == 0) return pack<packers<width>::template bytes>(p, in, out, n);
  if constexpr (width != 8) {
    // the largest turn is 8 less the greatest common divisor of 8 and m
    const unsigned turn = m % 2 ? 7 : m % 4 ? 6 : 4;
    if (m + turn > 64 || (width != 64 && m / 2 + turn > 32)) return pack<packers<width>::template bits_over>(p, in, out, n);
  }
  return pack<packers<width>::template bits>(p, in, out, n);
}

}  // namespace

bool encode8(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return encode<8>(p, in, out, n);
}
bool encode16(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return encode<16>(p, in, out, n);
}
bool encode32(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return encode<32>(p, in, out, n);
}
bool encode64(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return encode<64>(p, in, out, n);
}

bool encode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return p.msb_first ? encode_steps<packer_1<true, before::look>>(p, in, out, n)
                     : encode_steps<packer_1<false, before::look>>(p, in, out, n);
}

}  // namespace zarrbits::detail::avx512

#endif
