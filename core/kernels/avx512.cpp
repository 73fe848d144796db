// SPDX-License-Identifier: BSL-1.0
//
// AVX-512 (BW, VL, VBMI, VBMI2, GFNI): one encoder and one decoder for all widths, and bool; the rest of the table is AVX2's. 64 bytes
// of components at a time. 8 components of k bits are k bytes, so that a vector of components is whole bytes when encoded.
//
// Two instructions make the difference. vpermb moves any byte to any place; vpmultishiftqb takes each byte of the result from any bit of
// its 64-bit lane.
//
// Nothing is loaded or stored outside the caller's memory: the last vectors are loaded and stored under masks.
//
#include "core/kernels/avx2.hpp"

#ifdef ZARRBITS_X86_KERNELS

#include <array>

#if defined(__GNUC__) && !defined(__clang__)
// gcc's own header leaves a variable uninitialised where it is not looked at
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define ZARRBITS_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni,prfchw")))
#define ZARRBITS_AVX512_INLINE \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni,prfchw"), always_inline)) inline

namespace zarrbits::detail::avx512 {

namespace {

template <unsigned width>
ZARRBITS_AVX512_INLINE __m512i broadcast(std::uint64_t value) noexcept {
  if constexpr (width == 8) return _mm512_set1_epi8(static_cast<char>(value));
  if constexpr (width == 16) return _mm512_set1_epi16(static_cast<short>(value));
  if constexpr (width == 32) return _mm512_set1_epi32(static_cast<int>(value));
  if constexpr (width == 64) return _mm512_set1_epi64(static_cast<long long>(value));
}

template <unsigned width>
ZARRBITS_AVX512_INLINE __m512i add(__m512i a, __m512i b) noexcept {
  if constexpr (width == 8) return _mm512_add_epi8(a, b);
  if constexpr (width == 16) return _mm512_add_epi16(a, b);
  if constexpr (width == 32) return _mm512_add_epi32(a, b);
  if constexpr (width == 64) return _mm512_add_epi64(a, b);
}

template <unsigned width>
ZARRBITS_AVX512_INLINE __m512i shift_right(__m512i x, __m128i by) noexcept {
  if constexpr (width <= 16) return _mm512_srl_epi16(x, by);
  if constexpr (width == 32) return _mm512_srl_epi32(x, by);
  if constexpr (width == 64) return _mm512_srl_epi64(x, by);
}

template <unsigned width>
ZARRBITS_AVX512_INLINE __m512i shift_right_signed(__m512i x, __m128i by) noexcept {
  if constexpr (width <= 16) return _mm512_sra_epi16(x, by);
  if constexpr (width == 32) return _mm512_sra_epi32(x, by);
  if constexpr (width == 64) return _mm512_sra_epi64(x, by);
}

ZARRBITS_AVX512_INLINE __m128i count(unsigned n) noexcept { return _mm_cvtsi32_si128(static_cast<int>(n)); }
ZARRBITS_AVX512_INLINE __m512i load(const void* at) noexcept { return _mm512_loadu_si512(at); }

// The lowest n <= 64 bytes.
ZARRBITS_AVX512_INLINE __mmask64 bytes(std::size_t n) noexcept { return low_bits(static_cast<unsigned>(n)); }

// ------------------------------------------------------------------------------------------------------------------- encoder
//
// 16-bit components, 11 bits kept:
//   |.....ddddddddddd|.....ccccccccccc|.....bbbbbbbbbbb|.....aaaaaaaaaaa|
//   |..........dddddddddddccccccccccc|..........bbbbbbbbbbbaaaaaaaaaaa|      neighbours joined: vpmaddwd by (1, 2^11)
//   |....................dddddddddddcccccccccccbbbbbbbbbbbaaaaaaaaaaa|      and again: vpsllvd in the even lanes, vpsrlvq. 44 bits,
//   |................hhhhhhhhhhhggggggggggg ... fffeeeeeeeeeee....|            turned to where the lane begins in its byte: the next by 4
// and vpermb brings the bytes together: those of even lanes, those of odd lanes, or-ed since they share a byte.

struct encode_plan {
  alignas(64) std::uint8_t even[64], odd[64], over[64];  // vpermb: bytes of even lanes, of odd ones, of what left its lane at the top
  alignas(64) std::uint64_t turn[8];                     // bit of its first byte at which a lane begins
  std::uint64_t even_bytes, odd_bytes, over_bytes;       // bytes of the result that get something
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

enum class before { nothing, shift, shift_and_mask };
enum class lanes { short_bytes, bytes, bits, bits_over };

// What a lossless component needs before it is joined, and what is collected to know that it is lossless.
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
    // unsigned components need no mask when they are checked: any bit that it would take away is an error, and found
    seen = _mm512_or_si512(seen, prepare == before::shift_and_mask ? add<width>(x, bias_) : x);
    if constexpr (prepare != before::nothing) x = shift_right<width>(x, first_);
    if constexpr (prepare == before::shift_and_mask) x = _mm512_and_si512(x, mask_);
    return x;
  }

  ZARRBITS_AVX512_INLINE bool lossless(__m512i seen) const noexcept { return _mm512_test_epi64_mask(seen, dropped_) == 0; }

 private:
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
      return _mm512_or_si512(_mm512_maskz_permutexvar_epi8(even_bytes_, even_, x), _mm512_maskz_permutexvar_epi8(odd_bytes_, odd_, x));
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
  std::size_t inside = size < Step::reach ? 0 : std::min(n / Step::components, (size - Step::reach) / o + 1);
  n -= inside * Step::components;
  for (; inside >= 4; inside -= 4, in += 256, out += 4 * o) {
    encode_vector(s, in, out, seen);
    encode_vector(s, in + 64, out + o, seen);
    encode_vector(s, in + 128, out + 2 * o, seen);
    encode_vector(s, in + 192, out + 3 * o, seen);
  }
  for (; inside != 0; --inside, in += 64, out += o) encode_vector(s, in, out, seen);
  while (n != 0) {
    const std::size_t m = std::min<std::size_t>(n, Step::components);
    const __m512i x = s(_mm512_maskz_loadu_epi8(bytes(m * p.size), in), seen);
    _mm512_mask_storeu_epi8(out, bytes((m * p.bits + 7) / 8), x);
    n -= m;
    in += 64;
    out += o;
  }
  return s.lossless(seen);
}

template <template <before> class Step>
bool pack(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (p.is_signed || !is_checked(p)) return encode_steps<Step<before::shift_and_mask>>(p, in, out, n);
  if (p.first_bit != 0) return encode_steps<Step<before::shift>>(p, in, out, n);
  return encode_steps<Step<before::nothing>>(p, in, out, n);
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

bool encode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return p.msb_first ? encode_steps<packer_1<true, before::nothing>>(p, in, out, n)
                     : encode_steps<packer_1<false, before::nothing>>(p, in, out, n);
}

// ------------------------------------------------------------------------------------------------------------------- decoder
//
// 11 bits to 16:
//   |ddddddddddd|ccccccccccc|bbbbbbbbbbb|aaaaaaaaaaa|                   44 bits
//   |............hhhh|dddddddddddcccccccccccbbbbbbbbbbbaaaaaaaaaaa|     the bytes that hold them in each lane of 64 bits: vpermb
//   |hhhhhddddddddddd|dddddccccccccccc|cccccbbbbbbbbbbb|bbbbbaaaaaaaaaaa|      vpmultishiftqb: bytes from bits 0, 8, 11, 19, 22, ...
//   |.....ddddddddddd|.....ccccccccccc|.....bbbbbbbbbbb|.....aaaaaaaaaaa|      masked
// first_bit only changes the bits that bytes are taken from. Signed fields are taken to the top of the component and shifted down.

struct decode_plan {
  alignas(64) std::uint8_t bytes[64];  // vpermb
  alignas(64) std::uint8_t bits[64];   // bit of the lane at which a byte of the result begins, first_bit 0
};

// A lane of `lane_bytes` with components of `width` bits. 
template <unsigned width>
constexpr decode_plan make_decode_plan(unsigned bits) {
  decode_plan p{};
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned lane_begin = i / 8 * (64 / width) * bits;
    p.bytes[i] = static_cast<std::uint8_t>((lane_begin / 8 + i % 8) % 64);  // what wraps around is not used
    p.bits[i] = static_cast<std::uint8_t>((lane_begin % 8 + i % 8 * 8 / width * bits + i * 8 % width) % 64);
  }
  return p;
}

template <unsigned width>
constexpr auto make_decode_plans() {
  std::array<decode_plan, width> plans{};
  for (unsigned bits = 1; bits < width; ++bits) plans[bits] = make_decode_plan<width>(bits);
  return plans;
}

template <unsigned width>
constexpr auto decode_plans = make_decode_plans<width>();

constexpr std::uint64_t possible_bits(const packing& p) noexcept {
  return low_bits(p.zero_above ? p.type_bits : 8u * p.size) & ~low_bits(p.first_bit);
}

template <unsigned width, bool is_signed>
class unpacker {
 public:
  static constexpr unsigned components = 512 / width;

  ZARRBITS_AVX512 explicit unpacker(const packing& p) noexcept {
    const decode_plan& l = decode_plans<width>[p.bits];
    bytes_ = load(l.bytes);
    const unsigned up = width == 8 || !is_signed ? p.first_bit : width - p.bits;
    bits_ = _mm512_sub_epi8(load(l.bits), _mm512_set1_epi8(static_cast<char>(up)));
    down_ = count(width - p.bits - p.first_bit);
    keep_ = broadcast<width>(is_signed ? possible_bits(p) : low_bits(p.bits) << p.first_bit);
    if constexpr (width == 8) {
      // the matrix that copies each bit, the sign also to those above it; its row for bit 0 is the uppermost byte
      std::uint64_t matrix = 0;
      for (unsigned bit = 0; bit < 8; ++bit) {
        const unsigned from = std::min(bit, p.first_bit + p.bits - 1u);
        if (possible_bits(p) >> bit & 1) matrix |= std::uint64_t{1} << from << (8 * (7 - bit));
      }
      matrix_ = _mm512_set1_epi64(static_cast<long long>(matrix));
    }
  }

  ZARRBITS_AVX512_INLINE __m512i operator()(__m512i x) const noexcept {
    x = _mm512_multishift_epi64_epi8(bits_, _mm512_permutexvar_epi8(bytes_, x));
    if constexpr (!is_signed) return _mm512_and_si512(x, keep_);
    if constexpr (width == 8) return _mm512_gf2p8affine_epi64_epi8(x, matrix_, 0);
    return _mm512_and_si512(shift_right_signed<width>(x, down_), keep_);
  }

 private:
  __m512i bytes_, bits_, keep_, matrix_;
  __m128i down_;
};

// Where a lane's fields and the bits below them in its first byte do not fit in 64 bits: the next 8 bytes too, and a shift of both.
// Lanes are components here.
struct wide_plan {
  alignas(64) std::uint8_t low[64], high[64];
  alignas(64) std::uint8_t shift[64];
};

template <unsigned width>
constexpr wide_plan make_wide_plan(unsigned bits) {
  wide_plan p{};
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned begin = i / (width / 8) * bits, byte = begin / 8 + i % (width / 8);
    p.low[i] = static_cast<std::uint8_t>(byte % 64);
    p.high[i] = static_cast<std::uint8_t>((byte + width / 8) % 64);  // what wraps around is not used
    p.shift[i] = i % (width / 8) == 0 ? begin % 8 : 0;
  }
  return p;
}

constexpr wide_plan wide_plan_31 = make_wide_plan<32>(31);
constexpr wide_plan wide_plans[] = {make_wide_plan<64>(59), make_wide_plan<64>(61), make_wide_plan<64>(62), make_wide_plan<64>(63)};

template <unsigned width, bool is_signed>
class wide_unpacker {
 public:
  static constexpr unsigned components = 512 / width;

  ZARRBITS_AVX512 explicit wide_unpacker(const packing& p) noexcept {
    const wide_plan& l = width == 32 ? wide_plan_31 : wide_plans[p.bits == 59 ? 0 : p.bits - 60];
    low_ = load(l.low);
    high_ = load(l.high);
    shift_ = load(l.shift);
    up_ = count(width - p.bits);
    down_ = count(width - p.bits - p.first_bit);
    keep_ = broadcast<width>(possible_bits(p));
  }

  ZARRBITS_AVX512_INLINE __m512i operator()(__m512i x) const noexcept {
    const __m512i low = _mm512_permutexvar_epi8(low_, x), high = _mm512_permutexvar_epi8(high_, x);
    if constexpr (width == 32)
      x = _mm512_sll_epi32(_mm512_shrdv_epi32(low, high, shift_), up_);
    else
      x = _mm512_sll_epi64(_mm512_shrdv_epi64(low, high, shift_), up_);
    return _mm512_and_si512(is_signed ? shift_right_signed<width>(x, down_) : shift_right<width>(x, down_), keep_);
  }

 private:
  __m512i low_, high_, shift_, keep_;
  __m128i up_, down_;
};

template <class Step>
ZARRBITS_AVX512 void decode_steps(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const Step s(p);
  const std::size_t i = Step::components * p.bits / 8, size = n / 8 * p.bits + (n % 8 * p.bits + 7) / 8;
  std::size_t inside = size < 64 ? 0 : std::min(n / Step::components, (size - 64) / i + 1);
  n -= inside * Step::components;
  std::size_t left = size - inside * i;
  const bool prefetch = avx2::prefetch_pays();
  for (; inside >= 4; inside -= 4, in += 4 * i, out += 256) {
    if (prefetch)
      for (std::size_t line = 0; line < 4; ++line) __builtin_prefetch(out + avx2::ahead + 64 * line, 1);
    _mm512_storeu_si512(out, s(load(in)));
    _mm512_storeu_si512(out + 64, s(load(in + i)));
    _mm512_storeu_si512(out + 128, s(load(in + 2 * i)));
    _mm512_storeu_si512(out + 192, s(load(in + 3 * i)));
  }
  for (; inside != 0; --inside, in += i, out += 64) _mm512_storeu_si512(out, s(load(in)));
  while (n != 0) {
    const std::size_t m = std::min<std::size_t>(n, Step::components);
    const __m512i x = s(_mm512_maskz_loadu_epi8(bytes(std::min<std::size_t>(left, 64)), in));
    _mm512_mask_storeu_epi8(out, bytes(m * p.size), x);
    n -= m;
    left -= std::min(left, i);
    in += i;
    out += 64;
  }
}

template <unsigned width>
void decode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if constexpr (width >= 32) {
    const unsigned m = 64 / width * p.bits, below = m % 2 ? 7 : m % 4 ? 6 : m % 8 ? 4 : 0;
    if (m + below > 64)
      return p.is_signed ? decode_steps<wide_unpacker<width, true>>(p, in, out, n) : decode_steps<wide_unpacker<width, false>>(p, in, out, n);
  }
  return p.is_signed ? decode_steps<unpacker<width, true>>(p, in, out, n) : decode_steps<unpacker<width, false>>(p, in, out, n);
}

// One bit: 8 bytes in all lanes, each byte of the result from its bit.
class unpacker_1 {
 public:
  static constexpr unsigned components = 64;

  ZARRBITS_AVX512 explicit unpacker_1(const packing& p) noexcept {
    alignas(64) std::uint8_t bits[64];
    for (unsigned i = 0; i < 64; ++i) bits[i] = static_cast<std::uint8_t>(p.msb_first ? i ^ 7 : i);
    bits_ = load(bits);
  }

  ZARRBITS_AVX512_INLINE __m512i operator()(__m512i x) const noexcept {
    return _mm512_and_si512(_mm512_multishift_epi64_epi8(bits_, _mm512_broadcastq_epi64(_mm512_castsi512_si128(x))), _mm512_set1_epi8(1));
  }

 private:
  __m512i bits_;
};

void decode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { decode_steps<unpacker_1>(p, in, out, n); }

}  // namespace

}  // namespace zarrbits::detail::avx512

namespace zarrbits::detail {

const kernel_table avx512_kernels = {
    "avx512",
    {avx2::copy, avx2::swap16, avx2::swap32, avx2::swap64},
    {avx512::encode<8>, avx512::encode<16>, avx512::encode<32>, avx512::encode<64>},
    {avx512::decode<8>, avx512::decode<16>, avx512::decode<32>, avx512::decode<64>},
    avx512::encode_bool,
    avx512::decode_bool,
    {avx2::check8, avx2::check16, avx2::check32, avx2::check64},
    avx2::extend,
};

}  // namespace zarrbits::detail

#endif
