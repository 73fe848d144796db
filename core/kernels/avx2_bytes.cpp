// SPDX-License-Identifier: BSL-1.0
//
// AVX2 for components of one byte, where lanes have no shifts of their own: decoding of 2 to 7 bits, and bool (or any 1 bit) both
// ways. Encoding of 2 to 7 bits is in avx2_encode.cpp.
//
#include "core/kernels/avx2.hpp"

#ifdef ZARRBITS_X86_KERNELS

#include <array>

namespace zarrbits::detail::avx2 {

namespace {

// Bits that decoded components can have, and the decoded form of a field.
constexpr std::uint64_t placed(const packing& p, unsigned field) noexcept {
  std::uint64_t v = field & low_bits(p.bits);
  if (p.is_signed && (v >> (p.bits - 1) & 1)) v |= ~low_bits(p.bits);
  return v << p.first_bit & low_bits(p.zero_above ? p.type_bits : 8);
}

// The vpshufb table of value(0) ... value(15), in both halves.
template <class Value>
ZARRBITS_AVX2_INLINE __m256i lookup(Value value) noexcept {
  alignas(16) std::uint8_t table[16];
  for (unsigned i = 0; i < 16; ++i) table[i] = static_cast<std::uint8_t>(value(i));
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
}

// 4 bits: a byte is two fields; what each becomes is looked up, so that first_bit and sign cost nothing.
//   |........bbbbaaaa|     bytes as 16-bit lanes
//   |....bbbb|....aaaa|    or-ed with itself shifted by 4, masked
template <bool plain>
class unpack_8_from_4 {
 public:
  static constexpr std::size_t components = 32, prefetch = 2;
  std::size_t bytes_in() const noexcept { return 16; }
  std::size_t bytes_out() const noexcept { return 32; }
  std::size_t reach() const noexcept { return 16; }

  ZARRBITS_AVX2 explicit unpack_8_from_4(const packing& p) noexcept {
    value_ = lookup([&](unsigned i) { return placed(p, i); });
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    __m256i x = _mm256_cvtepu8_epi16(load_half(in));
    x = _mm256_and_si256(_mm256_or_si256(x, _mm256_slli_epi16(x, 4)), _mm256_set1_epi8(0x0f));
    store(out, plain ? x : _mm256_shuffle_epi8(value_, x));
  }

 private:
  __m256i value_;
};

// 2 bits: as with 4 bits, then each half byte is looked up twice, once for its lower field and once for its upper one, and the
// two are interleaved. For that the halves of the vector begin with bytes 0-3, 8-11 and 4-7, 12-15.
class unpack_8_from_2 {
 public:
  static constexpr std::size_t components = 64, prefetch = 4;
  std::size_t bytes_in() const noexcept { return 16; }
  std::size_t bytes_out() const noexcept { return 64; }
  std::size_t reach() const noexcept { return 16; }

  ZARRBITS_AVX2 explicit unpack_8_from_2(const packing& p) noexcept {
    lower_ = lookup([&](unsigned i) { return placed(p, i); });
    upper_ = lookup([&](unsigned i) { return placed(p, i >> 2); });
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const __m256i spread = _mm256_setr_epi8(0, -1, 1, -1, 2, -1, 3, -1, 8, -1, 9, -1, 10, -1, 11, -1,  //
                                            4, -1, 5, -1, 6, -1, 7, -1, 12, -1, 13, -1, 14, -1, 15, -1);
    __m256i x = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load_half(in)), spread);
    x = _mm256_and_si256(_mm256_or_si256(x, _mm256_slli_epi16(x, 4)), _mm256_set1_epi8(0x0f));
    const __m256i lower = _mm256_shuffle_epi8(lower_, x), upper = _mm256_shuffle_epi8(upper_, x);
    store(out, _mm256_unpacklo_epi8(lower, upper));
    store(out + 32, _mm256_unpackhi_epi8(lower, upper));
  }

 private:
  __m256i lower_, upper_;
};

// 3, 5, 6, 7 bits: 16-bit windows for the even components and for the odd ones. The even fields go down to the bottom of the
// window (the high half of a product with 2^15 to 2^8 shifts down by 1 to 8), the odd ones to its upper byte (the low half of a
// product). 6 bits:
//   even  |......aaaaaa..|  ->  |..........aaaaaa|
//   odd   |..bbbbbb......|  ->  |..bbbbbb........|    blended
struct plan8 {
  alignas(32) std::uint8_t even[32], odd[32];
  alignas(32) std::uint16_t down[16], up[16];
};

constexpr plan8 make_plan8(unsigned bits) {
  plan8 p{};
  for (unsigned i = 0; i < 16; ++i) {
    const unsigned even = i % 8 * 2 * bits, odd = even + bits;
    // a field that begins with a byte is taken as the second byte of its window; before the first one there is nothing
    const bool second = even % 8 == 0;
    p.even[2 * i] = static_cast<std::uint8_t>(second ? (even == 0 ? 0x80 : even / 8 - 1) : even / 8);
    p.even[2 * i + 1] = static_cast<std::uint8_t>(second ? even / 8 : even / 8 + 1);
    p.down[i] = static_cast<std::uint16_t>(1u << (16 - (second ? 8 : even % 8)));
    p.odd[2 * i] = static_cast<std::uint8_t>(odd / 8);
    p.odd[2 * i + 1] = static_cast<std::uint8_t>(odd / 8 + 1);
    p.up[i] = static_cast<std::uint16_t>(1u << (8 - odd % 8));
  }
  return p;
}

constexpr std::array<plan8, 8> plans8 = {plan8{}, plan8{},       plan8{},       make_plan8(3),
                                         plan8{}, make_plan8(5), make_plan8(6), make_plan8(7)};

template <bool is_signed, bool moved>
class unpack_8 {
 public:
  static constexpr std::size_t components = 32, prefetch = 0;
  std::size_t bytes_in() const noexcept { return 2 * start_; }
  std::size_t bytes_out() const noexcept { return 32; }
  std::size_t reach() const noexcept { return start_ + 16; }

  ZARRBITS_AVX2 explicit unpack_8(const packing& p) noexcept {
    const plan8& l = plans8[p.bits];
    even_ = load(l.even);
    odd_ = load(l.odd);
    down_ = load(l.down);
    up_ = load(l.up);
    start_ = 2u * p.bits;
    mask_ = broadcast<8>(low_bits(p.bits));
    first_ = count(p.first_bit);
    sign_ = broadcast<8>(1u << (p.first_bit + p.bits - 1));
    possible_ = broadcast<8>(low_bits(p.zero_above ? p.type_bits : 8));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const __m256i x = load_halves(in, in + start_);
    const __m256i even = _mm256_mulhi_epu16(_mm256_shuffle_epi8(x, even_), down_);
    const __m256i odd = _mm256_mullo_epi16(_mm256_shuffle_epi8(x, odd_), up_);
    __m256i y = _mm256_and_si256(_mm256_blendv_epi8(even, odd, _mm256_set1_epi16(static_cast<short>(0xff00))), mask_);
    if constexpr (moved) y = _mm256_sll_epi16(y, first_);
    if constexpr (is_signed) y = _mm256_sub_epi8(_mm256_xor_si256(y, sign_), sign_);
    if constexpr (is_signed && moved) y = _mm256_and_si256(y, possible_);
    store(out, y);
  }

 private:
  __m256i even_, odd_, down_, up_, mask_, sign_, possible_;
  __m128i first_;
  std::size_t start_;
};

// One bit, encoding: it is shifted to the top of its byte, where vpmovmskb takes it. From the other end of the byte: the bytes of
// each eight are reversed before. Load, mask, store, one after the other: several masks stored side by side are put together in a
// vector by gcc, which is slower.
template <bool msb_first, bool nonzero, bool is_signed>
class pack_1 {
 public:
  static constexpr std::size_t components = 64, reach = 8;
  std::size_t bytes_in() const noexcept { return 64; }
  std::size_t bytes_out() const noexcept { return 8; }

  ZARRBITS_AVX2 explicit pack_1(const packing& p) noexcept {
    const loss what = what_is_lost(p);
    bias_ = broadcast<8>(what.bias);
    dropped_ = broadcast<8>(what.dropped);
    up_ = count(7u - p.first_bit);
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out, __m256i& seen) const noexcept {
    const int low = mask(load_once(in), seen);
    std::memcpy(out, &low, 4);
    const int high = mask(load_once(in + 32), seen);
    std::memcpy(out + 4, &high, 4);
  }

  ZARRBITS_AVX2_INLINE bool lossless(__m256i seen) const noexcept { return _mm256_testz_si256(seen, dropped_); }

 private:
  ZARRBITS_AVX2_INLINE int mask(__m256i x, __m256i& seen) const noexcept {
    if constexpr (!nonzero) seen = _mm256_or_si256(seen, is_signed ? _mm256_add_epi8(x, bias_) : x);
    if constexpr (msb_first)
      x = _mm256_shuffle_epi8(x,
                              _mm256_broadcastsi128_si256(_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8)));
    if constexpr (nonzero) return ~_mm256_movemask_epi8(_mm256_cmpeq_epi8(x, _mm256_setzero_si256()));
    return _mm256_movemask_epi8(_mm256_sll_epi16(x, up_));
  }

  __m256i bias_, dropped_;
  __m128i up_;
};

// One bit, decoding: 16 bytes in both halves, each copied to the 8 bytes that its bits become, where one bit is selected.
class unpack_1 {
 public:
  static constexpr std::size_t components = 128, prefetch = 8;
  std::size_t bytes_in() const noexcept { return 16; }
  std::size_t bytes_out() const noexcept { return 128; }
  std::size_t reach() const noexcept { return 16; }

  ZARRBITS_AVX2 explicit unpack_1(const packing& p) noexcept {
    select_ = _mm256_set1_epi64x(p.msb_first ? 0x0102040810204080 : static_cast<long long>(0x8040201008040201));
    // all bits set where the bit is: what remains of that
    value_ = broadcast<8>(placed(p, 1));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const __m256i x = _mm256_broadcastsi128_si256(load_half(in));
    __m256i index = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    for (int i = 0; i < 4; ++i, index = _mm256_add_epi8(index, _mm256_set1_epi8(4))) {
      const __m256i bit = _mm256_and_si256(_mm256_shuffle_epi8(x, index), select_);
      store(out + 32 * i, _mm256_and_si256(_mm256_cmpeq_epi8(bit, select_), value_));
    }
  }

 private:
  __m256i select_, value_;
};

}  // namespace

bool encode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return p.is_bool ? portable_kernels.encode_bool(p, in, out, n) : portable_kernels.encode[0](p, in, out, n);
  if (p.is_bool && p.nonzero_is_true)
    return p.msb_first ? encode_steps<pack_1<true, true, false>>(p, in, out, n)
                       : encode_steps<pack_1<false, true, false>>(p, in, out, n);
  if (p.is_signed) return encode_steps<pack_1<false, false, true>>(p, in, out, n);
  return p.msb_first ? encode_steps<pack_1<true, false, false>>(p, in, out, n)
                     : encode_steps<pack_1<false, false, false>>(p, in, out, n);
}

void decode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return p.is_bool ? portable_kernels.decode_bool(p, in, out, n) : portable_kernels.decode[0](p, in, out, n);
  decode_steps<unpack_1>(p, in, out, n);
}

void decode8(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.decode[0](p, in, out, n);
  const bool plain = p.first_bit == 0 && !p.is_signed;
  switch (p.bits) {
    case 1:
      return decode_steps<unpack_1>(p, in, out, n);
    case 2:
      return decode_steps<unpack_8_from_2>(p, in, out, n);
    case 4:
      return plain ? decode_steps<unpack_8_from_4<true>>(p, in, out, n) : decode_steps<unpack_8_from_4<false>>(p, in, out, n);
    default:
      break;
  }
  if (p.first_bit == 0 && !p.zero_above)
    return p.is_signed ? decode_steps<unpack_8<true, false>>(p, in, out, n) : decode_steps<unpack_8<false, false>>(p, in, out, n);
  return p.is_signed ? decode_steps<unpack_8<true, true>>(p, in, out, n) : decode_steps<unpack_8<false, true>>(p, in, out, n);
}

}  // namespace zarrbits::detail::avx2

#endif
