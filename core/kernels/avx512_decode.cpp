// SPDX-License-Identifier: BSL-1.0
//
// Decoding with AVX-512. 11 bits to 16:
//
//   |ddddddddddd|ccccccccccc|bbbbbbbbbbb|aaaaaaaaaaa|                        44 bits
//   |hhhhhhhhhgggggggggggddddddddddd ... bbbbbbbbbbbaaaaaaaaaaa|            vpermb: each lane of 64 bits gets their bytes
//   |eeeeeddddddddddd|dddddccccccccccc|cccccbbbbbbbbbbb|bbbbbaaaaaaaaaaa|   vpmultishiftqb: bytes from bits 0, 8, 11, 19, 22 ...
//   |.....ddddddddddd|.....ccccccccccc|.....bbbbbbbbbbb|.....aaaaaaaaaaa|   masked
//
// first_bit only changes the bits that bytes are taken from. Signed fields are moved to the top of the component and shifted
// down.
//
#include "core/kernels/avx512.hpp"

#ifdef ZARRBITS_X86_KERNELS

namespace zarrbits::detail::avx512 {

namespace {

struct decode_plan {
  alignas(64) std::uint8_t bytes[64];  // vpermb
  alignas(64) std::uint8_t bits[64];   // bit of the lane at which a byte of the result begins, for first_bit 0
};

template <unsigned width>
constexpr decode_plan make_decode_plan(unsigned bits) {
  decode_plan p{};
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned lane_begin = i / 8 * (64 / width) * bits;
    p.bytes[i] = static_cast<std::uint8_t>((lane_begin / 8 + i % 8) % 64);  // bytes that wrap around are not used
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
      // the matrix that copies each bit, and the sign to those above it; its row for bit 0 is the uppermost byte
      std::uint64_t matrix = 0;
      for (unsigned bit = 0; bit < 8; ++bit) {
        const unsigned source_bit = std::min(bit, p.first_bit + p.bits - 1u);
        if (possible_bits(p) >> bit & 1) matrix |= std::uint64_t{1} << source_bit << (8 * (7 - bit));
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

// For lanes whose fields, with the bits below them in their first byte, do not fit in 64 bits: takes the next 8 bytes too, and
// shifts both. Lanes are components here.
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
    p.high[i] = static_cast<std::uint8_t>((byte + width / 8) % 64);  // bytes that wrap around are not used
    p.shift[i] = i % (width / 8) == 0 ? begin % 8 : 0;
  }
  return p;
}

constexpr wide_plan wide_plan_31 = make_wide_plan<32>(31);
constexpr wide_plan wide_plans[] = {make_wide_plan<64>(59), make_wide_plan<64>(61), make_wide_plan<64>(62),
                                    make_wide_plan<64>(63)};

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
    if constexpr (width == 32) x = _mm512_sll_epi32(_mm512_shrdv_epi32(low, high, shift_), up_);
    else x = _mm512_sll_epi64(_mm512_shrdv_epi64(low, high, shift_), up_);
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
  std::size_t inside = avx2::steps_inside(n / Step::components, i, 64, size);
  n -= inside * Step::components;
  std::size_t remaining = size - inside * i;
  const bool prefetch = avx2::prefetch_pays();
  for (; inside >= 4; inside -= 4, in += 4 * i, out += 256) {
    if (prefetch)
      for (std::size_t line = 0; line < 4; ++line) __builtin_prefetch(out + avx2::prefetch_distance + 64 * line, 1);
    _mm512_storeu_si512(out, s(load(in)));
    _mm512_storeu_si512(out + 64, s(load(in + i)));
    _mm512_storeu_si512(out + 128, s(load(in + 2 * i)));
    _mm512_storeu_si512(out + 192, s(load(in + 3 * i)));
  }
  for (; inside != 0; --inside, in += i, out += 64) _mm512_storeu_si512(out, s(load(in)));
  while (n != 0) {
    const std::size_t m = std::min<std::size_t>(n, Step::components);
    const __m512i x = s(_mm512_maskz_loadu_epi8(bytes(std::min<std::size_t>(remaining, 64)), in));
    _mm512_mask_storeu_epi8(out, bytes(m * p.size), x);
    n -= m;
    remaining -= std::min(remaining, i);
    in += i;
    out += 64;
  }
}

template <unsigned width>
void decode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if constexpr (width >= 32) {
    const unsigned m = 64 / width * p.bits, bits_below = m % 2 ? 7 : m % 4 ? 6 : m % 8 ? 4 : 0;
    if (m + bits_below > 64)
      return p.is_signed ? decode_steps<wide_unpacker<width, true>>(p, in, out, n)
                         : decode_steps<wide_unpacker<width, false>>(p, in, out, n);
  }
  return p.is_signed ? decode_steps<unpacker<width, true>>(p, in, out, n) : decode_steps<unpacker<width, false>>(p, in, out, n);
}

// One bit: 8 bytes in all lanes; each byte of the result comes from its bit.
class unpacker_1 {
 public:
  static constexpr unsigned components = 64;

  ZARRBITS_AVX512 explicit unpacker_1(const packing& p) noexcept {
    alignas(64) std::uint8_t bits[64];
    for (unsigned i = 0; i < 64; ++i) bits[i] = static_cast<std::uint8_t>(p.msb_first ? i ^ 7 : i);
    bits_ = load(bits);
  }

  ZARRBITS_AVX512_INLINE __m512i operator()(__m512i x) const noexcept {
    return _mm512_and_si512(_mm512_multishift_epi64_epi8(bits_, _mm512_broadcastq_epi64(_mm512_castsi512_si128(x))),
                            _mm512_set1_epi8(1));
  }

 private:
  __m512i bits_;
};

}  // namespace

void decode8(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { decode<8>(p, in, out, n); }
void decode16(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { decode<16>(p, in, out, n); }
void decode32(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { decode<32>(p, in, out, n); }
void decode64(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { decode<64>(p, in, out, n); }
void decode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  decode_steps<unpacker_1>(p, in, out, n);
}

}  // namespace zarrbits::detail::avx512

#endif
