// SPDX-License-Identifier: BSL-1.0
//
// AVX2 for components of one byte, for which there are no shifts per lane: decoding of 2 to 7 bits, and bool (or any 1 bit) both
// ways. Encoding of 2 to 7 bits is in avx2_encode.cpp.
//
#include "core/kernels/avx2.hpp"

#ifdef ZARRBITS_X86_KERNELS

#include <array>

namespace zarrbits::detail::avx2 {

namespace {

// Possible bits of decoded components, and the decoded form of a field.
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

// The lower four bits of each byte and the upper four.
struct nibbles {
  __m256i lower, upper;
  ZARRBITS_AVX2_INLINE explicit nibbles(__m256i x) noexcept
      : lower(_mm256_and_si256(x, _mm256_set1_epi8(0x0f))),
        upper(_mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(0x0f))) {}
};

// The decoded form of fields of 2 and 4 bits, alone at the bottom of their bytes. These kernels are limited by shuffles, so only
// the forms that need it look values up.
enum class become {
  unchanged,  // unsigned, first_bit 0
  signed_,    // first_bit 0: (x ^ s) - s extends the sign s
  looked_up
};

template <become form>
class values {
 public:
  ZARRBITS_AVX2 explicit values(const packing& p) noexcept {
    table_ = lookup([&](unsigned i) { return placed(p, i); });
    sign_ = broadcast<8>(1u << (p.bits - 1));
  }
  ZARRBITS_AVX2_INLINE __m256i operator()(__m256i x) const noexcept {
    if constexpr (form == become::signed_) x = _mm256_sub_epi8(_mm256_xor_si256(x, sign_), sign_);
    if constexpr (form == become::looked_up) x = _mm256_shuffle_epi8(table_, x);
    return x;
  }

 private:
  __m256i table_, sign_;
};

// 4 bits: a byte is two fields.
//   |dddd|cccc|bbbb|aaaa|                          2 bytes
//   |....cccc|....aaaa|   |....dddd|....bbbb|      lower and upper
//   |....dddd|....cccc|....bbbb|....aaaa|          interleaved
// vpunpck takes the lower 8 bytes of both halves of a vector, or the upper ones: quarters in the order 0 2 1 3 make these
// contiguous.
template <become form>
class unpack_8_from_4 {
 public:
  static constexpr std::size_t components = 64, lines_in = 2, lines_out = 4;
  std::size_t bytes_in() const noexcept { return 32; }
  std::size_t bytes_out() const noexcept { return 64; }
  std::size_t lead() const noexcept { return 0; }
  std::size_t reach() const noexcept { return 32; }

  ZARRBITS_AVX2 explicit unpack_8_from_4(const packing& p) noexcept : value_(p) {}

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const nibbles n(_mm256_permute4x64_epi64(load(in), 0xd8));
    const __m256i lower = value_(n.lower), upper = value_(n.upper);
    store(out, _mm256_unpacklo_epi8(lower, upper));
    store(out + 32, _mm256_unpackhi_epi8(lower, upper));
  }

 private:
  values<form> value_;
};

// 2 bits: as with 4 bits; then each half byte is split into its lower and its upper field, and the two are interleaved again.
template <become form>
class unpack_8_from_2 {
 public:
  static constexpr std::size_t components = 128, lines_in = 2, lines_out = 8;
  std::size_t bytes_in() const noexcept { return 32; }
  std::size_t bytes_out() const noexcept { return 128; }
  std::size_t lead() const noexcept { return 0; }
  std::size_t reach() const noexcept { return 32; }

  ZARRBITS_AVX2 explicit unpack_8_from_2(const packing& p) noexcept : value_(p) {}

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const nibbles n(_mm256_permutevar8x32_epi32(load(in), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7)));
    fields(_mm256_unpacklo_epi8(n.lower, n.upper), out);
    fields(_mm256_unpackhi_epi8(n.lower, n.upper), out + 64);
  }

 private:
  ZARRBITS_AVX2_INLINE void fields(__m256i x, std::byte* out) const noexcept {
    const __m256i two = _mm256_set1_epi8(3);
    const __m256i lower = value_(_mm256_and_si256(x, two)), upper = value_(_mm256_and_si256(_mm256_srli_epi16(x, 2), two));
    store(out, _mm256_unpacklo_epi8(lower, upper));
    store(out + 32, _mm256_unpackhi_epi8(lower, upper));
  }

  values<form> value_;
};

// The following get the bytes of both halves with one load, placed so that the upper half begins with its byte 16.

// 3, 5 and 6 bits: a window of 16 bits holds a pair. 6 bits:
//   |bbbbbbaaaaaa....|     vpmullw: to the top
//   |....bbbbbbaaaaaa|     down; with signs copied from b
//   |..bbbbbb..aaaaaa|     b moved up by 8 - 6: 2^8 - 2^6 times b added
// Where a is signed and negative, its sign borrows one from b in the sum. vpmulhrsw takes b rounded, that is, with one more just
// then. Shifts are products' high halves here: a shift of 16-bit lanes by a count in a register takes two steps.
struct plan8_pairs {
  alignas(32) std::uint8_t index[32];
  alignas(32) std::uint16_t up[16];
};

constexpr plan8_pairs make_plan8_pairs(unsigned bits) {
  plan8_pairs p{};
  for (unsigned i = 0; i < 16; ++i) {
    const unsigned bit = i % 8 * 2 * bits, byte = (i < 8 ? 16 - 2 * bits : 0) + bit / 8;
    p.index[2 * i] = static_cast<std::uint8_t>(byte);
    p.index[2 * i + 1] = static_cast<std::uint8_t>(byte + 1 < 16 ? byte + 1 : 0x80);
    p.up[i] = static_cast<std::uint16_t>(1u << (16 - 2 * bits - bit % 8));
  }
  return p;
}

constexpr std::array<plan8_pairs, 7> plans8_pairs = {plan8_pairs{}, plan8_pairs{},       plan8_pairs{},      make_plan8_pairs(3),
                                                     plan8_pairs{}, make_plan8_pairs(5), make_plan8_pairs(6)};

template <bool is_signed, bool moved>
class unpack_8_pairs {
 public:
  static constexpr std::size_t components = 32, lines_in = 2, lines_out = 2;
  std::size_t bytes_in() const noexcept { return static_cast<std::size_t>(2 * start_ + 32); }
  std::size_t bytes_out() const noexcept { return 32; }
  std::size_t lead() const noexcept { return static_cast<std::size_t>(-start_); }
  std::size_t reach() const noexcept { return static_cast<std::size_t>(start_ + 32); }

  ZARRBITS_AVX2 explicit unpack_8_pairs(const packing& p) noexcept {
    const plan8_pairs& l = plans8_pairs[p.bits];
    index_ = load(l.index);
    up_ = load(l.up);
    start_ = 2 * p.bits - 16;
    down_ = broadcast<16>(1u << 2 * p.bits);
    upper_ = broadcast<16>(1u << (is_signed ? p.bits - 1 : p.bits));
    times_ = broadcast<16>(256u - (1u << p.bits));
    first_ = broadcast<16>(1u << p.first_bit);
    possible_ = broadcast<8>(low_bits(p.zero_above ? p.type_bits : 8) & ~low_bits(p.first_bit));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const __m256i top = _mm256_mullo_epi16(_mm256_shuffle_epi8(load(in + start_), index_), up_);
    const __m256i pair = is_signed ? _mm256_mulhi_epi16(top, down_) : _mm256_mulhi_epu16(top, down_);
    const __m256i upper = is_signed ? _mm256_mulhrs_epi16(top, upper_) : _mm256_mulhi_epu16(top, upper_);
    __m256i y = _mm256_add_epi16(pair, _mm256_mullo_epi16(upper, times_));
    if constexpr (moved) y = _mm256_and_si256(_mm256_mullo_epi16(y, first_), possible_);
    store(out, y);
  }

 private:
  __m256i index_, up_, upper_, times_, down_, first_, possible_;
  std::ptrdiff_t start_;
};

// 7 bits: 16-bit windows for the even components and for the odd ones. The even fields go down to the bottom of the window (the
// high half of a product with 2^15 to 2^8 shifts down by 1 to 8), the odd ones to its upper byte (the low half of a product).
//   even  |.....aaaaaaa....|  ->  |.........aaaaaaa|
//   odd   |....bbbbbbb.....|  ->  |.bbbbbbb........|    blended
struct plan7 {
  alignas(32) std::uint8_t even[32], odd[32];
  alignas(32) std::uint16_t down[16], up[16];
};

constexpr plan7 make_plan7() {
  plan7 p{};
  for (unsigned i = 0; i < 16; ++i) {
    const unsigned even = i % 8 * 14, odd = even + 7, skip = i < 8 ? 2 : 0;
    // a field that begins at a byte is the second byte of its window; before the first field there is no byte
    const bool second = even % 8 == 0;
    const auto index = [](unsigned byte) { return static_cast<std::uint8_t>(byte < 16 ? byte : 0x80); };
    p.even[2 * i] = index(skip + even / 8 - second);  // wraps around
    p.even[2 * i + 1] = index(skip + even / 8 + !second);
    p.down[i] = static_cast<std::uint16_t>(1u << (16 - (second ? 8 : even % 8)));
    p.odd[2 * i] = index(skip + odd / 8);
    p.odd[2 * i + 1] = index(skip + odd / 8 + 1);
    p.up[i] = static_cast<std::uint16_t>(1u << (8 - odd % 8));
  }
  return p;
}

constexpr plan7 the_plan7 = make_plan7();

template <bool is_signed, bool moved>
class unpack_8_from_7 {
 public:
  static constexpr std::size_t components = 32, lines_in = 2, lines_out = 2;
  std::size_t bytes_in() const noexcept { return 28; }
  std::size_t bytes_out() const noexcept { return 32; }
  std::size_t lead() const noexcept { return 2; }
  std::size_t reach() const noexcept { return 30; }

  ZARRBITS_AVX2 explicit unpack_8_from_7(const packing& p) noexcept {
    first_ = broadcast<16>(1u << p.first_bit);
    sign_ = broadcast<8>(1u << (p.first_bit + 6));
    possible_ = broadcast<8>(low_bits(p.zero_above ? p.type_bits : 8));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const __m256i x = load(in - 2);
    const __m256i even = _mm256_mulhi_epu16(_mm256_shuffle_epi8(x, load(the_plan7.even)), load(the_plan7.down));
    const __m256i odd = _mm256_mullo_epi16(_mm256_shuffle_epi8(x, load(the_plan7.odd)), load(the_plan7.up));
    const __m256i odd_bytes = _mm256_set1_epi16(static_cast<short>(0xff00));
    __m256i y = _mm256_and_si256(_mm256_blendv_epi8(even, odd, odd_bytes), _mm256_set1_epi8(0x7f));
    if constexpr (moved) y = _mm256_mullo_epi16(y, first_);
    if constexpr (is_signed) y = _mm256_sub_epi8(_mm256_xor_si256(y, sign_), sign_);
    if constexpr (is_signed && moved) y = _mm256_and_si256(y, possible_);
    store(out, y);
  }

 private:
  __m256i sign_, first_, possible_;
};

// One bit, encoding: moves it to the top of its byte, from which vpmovmskb takes it. For the other bit order, the bytes of each
// group of eight are reversed first.
enum class one_bit {
  checked,  // a byte is 0 or 1, and 0 - x moves it to the top: any other value is an error, and detected
  nonzero,  // a byte that is not 0 is 1
  general,  // any position and sign, or unchecked: a product moves it to the top (a shift of bytes by a count takes two steps)
};

template <one_bit kind, bool msb_first>
class pack_1 {
 public:
  static constexpr std::size_t vectors = 2, components = 64, reach = 8, at_once = 4;
  std::size_t bytes_in() const noexcept { return 64; }
  std::size_t bytes_out() const noexcept { return 8; }

  ZARRBITS_AVX2 explicit pack_1(const packing& p) noexcept {
    const loss l = what_is_lost(p);
    bias_ = broadcast<8>(l.bias);
    dropped_ = broadcast<8>(l.dropped);
    up_ = broadcast<16>(1u << (7 - p.first_bit));
  }

  ZARRBITS_AVX2_INLINE __m256i operator()(const std::byte* in, std::byte* out, __m256i accumulated) const noexcept {
    const __m256i x = load_once(in), y = load_once(in + 32);
    store_bits(x, out);
    store_bits(y, out + 4);
    if constexpr (kind == one_bit::nonzero) return accumulated;
    if constexpr (kind == one_bit::checked) return _mm256_or_si256(accumulated, _mm256_or_si256(x, y));
    return _mm256_or_si256(accumulated, _mm256_or_si256(_mm256_add_epi8(x, bias_), _mm256_add_epi8(y, bias_)));
  }

  ZARRBITS_AVX2_INLINE bool lossless(__m256i accumulated) const noexcept { return _mm256_testz_si256(accumulated, dropped_); }

 private:
  ZARRBITS_AVX2_INLINE void store_bits(__m256i x, std::byte* out) const noexcept {
    const __m256i zero = _mm256_setzero_si256();
    if constexpr (kind == one_bit::checked) x = _mm256_sub_epi8(zero, x);
    if constexpr (kind == one_bit::nonzero) x = _mm256_cmpeq_epi8(zero, x);
    if constexpr (kind == one_bit::general) x = _mm256_mullo_epi16(x, up_);
    if constexpr (msb_first)
      x = _mm256_shuffle_epi8(x,
                              _mm256_broadcastsi128_si256(_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8)));
    auto mask = static_cast<std::uint32_t>(_mm256_movemask_epi8(x));
    if constexpr (kind == one_bit::nonzero) mask = ~mask;
    asm("" : "+r"(mask));  // stops gcc from joining masks that are stored side by side in a vector, which takes longer
    std::memcpy(out, &mask, 4);
  }

  __m256i bias_, dropped_, up_;
};

// One bit, decoding: 16 bytes in both halves, each copied to the 8 bytes of its bits; a mask then selects one bit in each. A
// result that is not 0 becomes 1 (plain), or the value of a set bit.
template <bool plain>
class unpack_1 {
 public:
  static constexpr std::size_t components = 128, lines_in = 1, lines_out = 8;
  std::size_t bytes_in() const noexcept { return 16; }
  std::size_t bytes_out() const noexcept { return 128; }
  std::size_t lead() const noexcept { return 0; }
  std::size_t reach() const noexcept { return 16; }

  ZARRBITS_AVX2 explicit unpack_1(const packing& p) noexcept {
    select_ = _mm256_set1_epi64x(p.msb_first ? 0x0102040810204080 : static_cast<long long>(0x8040201008040201));
    value_ = broadcast<8>(placed(p, 1));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const __m256i x = _mm256_broadcastsi128_si256(load_half(in));
    __m256i index = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    for (int i = 0; i < 4; ++i, index = _mm256_add_epi8(index, _mm256_set1_epi8(4))) {
      const __m256i bit = _mm256_and_si256(_mm256_shuffle_epi8(x, index), select_);
      store(out + 32 * i,
            plain ? _mm256_min_epu8(bit, _mm256_set1_epi8(1)) : _mm256_and_si256(_mm256_cmpeq_epi8(bit, select_), value_));
    }
  }

 private:
  __m256i select_, value_;
};

}  // namespace

bool encode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < min_components)
    return p.is_bool ? portable_kernels.encode_bool(p, in, out, n) : portable_kernels.encode[0](p, in, out, n);
  const auto pack = [&]<one_bit kind> {
    return p.msb_first ? encode_steps<pack_1<kind, true>>(p, in, out, n) : encode_steps<pack_1<kind, false>>(p, in, out, n);
  };
  if (p.is_bool && p.nonzero_is_true) return pack.template operator()<one_bit::nonzero>();
  if (is_checked(p) && !p.is_signed && p.first_bit == 0) return pack.template operator()<one_bit::checked>();
  return encode_steps<pack_1<one_bit::general, false>>(p, in, out, n);
}

void decode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < min_components)
    return p.is_bool ? portable_kernels.decode_bool(p, in, out, n) : portable_kernels.decode[0](p, in, out, n);
  if (p.first_bit == 0 && !p.is_signed) return decode_steps<unpack_1<true>>(p, in, out, n);
  decode_steps<unpack_1<false>>(p, in, out, n);
}

template <template <bool, bool> class Step>
static void unpack(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (p.first_bit == 0 && !p.zero_above)
    return p.is_signed ? decode_steps<Step<true, false>>(p, in, out, n) : decode_steps<Step<false, false>>(p, in, out, n);
  return p.is_signed ? decode_steps<Step<true, true>>(p, in, out, n) : decode_steps<Step<false, true>>(p, in, out, n);
}

template <template <become> class Step>
static void unpack_values(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (p.first_bit != 0 || p.zero_above) return decode_steps<Step<become::looked_up>>(p, in, out, n);
  return p.is_signed ? decode_steps<Step<become::signed_>>(p, in, out, n) : decode_steps<Step<become::unchanged>>(p, in, out, n);
}

void decode8(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < min_components) return portable_kernels.decode[0](p, in, out, n);
  switch (p.bits) {
    case 1: return decode_bool(p, in, out, n);
    case 2: return unpack_values<unpack_8_from_2>(p, in, out, n);
    case 4: return unpack_values<unpack_8_from_4>(p, in, out, n);
    case 7: return unpack<unpack_8_from_7>(p, in, out, n);
    default: return unpack<unpack_8_pairs>(p, in, out, n);
  }
}

}  // namespace zarrbits::detail::avx2

#endif
