// SPDX-License-Identifier: BSL-1.0
//
// Decoding with AVX2, 32 bytes of components at a time. Each lane gets the bytes that its field lies in (vpshufb, a *window*), a
// shift by a count of its own moves the field to the top of the lane, and one shift of all lanes moves it down to first_bit, with
// zeros or copies of the sign behind it. 12 bits to 16:
//
//   |dddddddddddd|cccccccccccc|bbbbbbbbbbbb|aaaaaaaaaaaa|     6 bytes
//   |ddddddddddddcccc|ccccccccccccbbbb|bbbbbbbbbbbbaaaa|....aaaaaaaaaaaa|     (shown without what is above) windows of 16 bits
//   |dddddddddddd....|cccccccccccc....|bbbbbbbbbbbb....|aaaaaaaaaaaa....|     to the top: vpmullw by 2^4 or 2^0
//   |....dddddddddddd|....cccccccccccc|....bbbbbbbbbbbb|....aaaaaaaaaaaa|     down
//
// AVX2 shifts lanes of 16 bits by counts of their own only by multiplying, lanes of 32 and 64 bits as they are, and has nothing
// for bytes.
//
#include "core/kernels/avx2.hpp"

#ifdef ZARRBITS_X86_KERNELS

#include <array>

namespace zarrbits::detail::avx2 {

namespace {

// Windows for 4 halves of vectors. A byte of a vpshufb index that is 0x80 gives zero.
template <class Lane>
struct plan {
  alignas(32) std::uint8_t index[64];
  alignas(32) Lane up[64 / sizeof(Lane)];  // what moves a field to the top of its lane: a count, for 16 bits a factor
  std::uint8_t start[4];                   // where each half's bytes begin
  std::uint8_t dword[2];                   // the same of the upper half of each vector, from the lower half on
  bool joined;                             // the index takes halves from such dwords, not from where they begin
};

// Are all bytes of each upper half in the 16 bytes from the dword in which it begins?
constexpr bool can_be_joined(unsigned bits_of_a_half) {
  for (unsigned half = 1; half < 4; half += 2) {
    const unsigned low = (half - 1) * bits_of_a_half / 8, begin = half * bits_of_a_half / 8,
                   end = ((half + 1) * bits_of_a_half + 7) / 8;
    if (end - (low + (begin - low) / 4 * 4) > 16) return false;
  }
  return true;
}

template <class Lane>
constexpr plan<Lane> make_plan(unsigned bits, bool may_join = true) {
  constexpr unsigned size = sizeof(Lane), lanes = 16 / size;
  plan<Lane> p{};
  p.joined = may_join && can_be_joined(lanes * bits);
  for (unsigned half = 0; half < 4; ++half) {
    const unsigned begin = half * lanes * bits;
    p.start[half] = static_cast<std::uint8_t>(begin / 8);
    unsigned skip = 0;
    if (half % 2 != 0) {
      p.dword[half / 2] = static_cast<std::uint8_t>((p.start[half] - p.start[half - 1]) / 4);
      if (p.joined) skip = (p.start[half] - p.start[half - 1]) % 4u;
    }
    for (unsigned i = 0; i < lanes; ++i) {
      const unsigned at = begin % 8 + i * bits, byte = skip + at / 8, below = at % 8;
      for (unsigned b = 0; b < size; ++b)
        p.index[16 * half + size * i + b] = static_cast<std::uint8_t>(byte + b < 16 ? byte + b : 0x80);
      const unsigned up =
          8 * size < bits + below ? 0 : 8 * size - bits - below;  // plans in which a field does not fit are not used
      p.up[half * lanes + i] = static_cast<Lane>(size == 2 ? std::uint64_t{1} << up : up);
    }
  }
  return p;
}

template <class Lane>
constexpr auto make_plans() {
  std::array<plan<Lane>, 8 * sizeof(Lane)> plans{};
  for (unsigned bits = 1; bits < plans.size(); ++bits) plans[bits] = make_plan<Lane>(bits);
  return plans;
}

constexpr auto plans16 = make_plans<std::uint16_t>();
constexpr auto plans32 = make_plans<std::uint32_t>();
constexpr auto plans64 = make_plans<std::uint64_t>();

// Bits that decoded components can have: none below first_bit, with zero_above none above the type.
constexpr std::uint64_t possible_bits(const packing& p) noexcept {
  return low_bits(p.zero_above ? p.type_bits : 8u * p.size) & ~low_bits(p.first_bit);
}

template <bool is_signed>
ZARRBITS_AVX2_INLINE __m256i shift_right16(__m256i x, __m128i by) noexcept {
  return is_signed ? _mm256_sra_epi16(x, by) : _mm256_srl_epi16(x, by);
}
template <bool is_signed>
ZARRBITS_AVX2_INLINE __m256i shift_right32(__m256i x, __m128i by) noexcept {
  return is_signed ? _mm256_sra_epi32(x, by) : _mm256_srl_epi32(x, by);
}

// What is not possible: only where first_bit or zero_above say so, elsewhere the shifts have left none of it.
template <bool masked>
ZARRBITS_AVX2_INLINE __m256i kept(__m256i x, __m256i possible) noexcept {
  return masked ? _mm256_and_si256(x, possible) : x;
}

// 16-bit components whose field and the bits below it in its first byte fit in 16 bits: up to 10 bits, and 12.
template <bool is_signed, bool masked>
class unpack_16 {
 public:
  static constexpr std::size_t components = 16, prefetch = 2;
  std::size_t bytes_in() const noexcept { return bytes_in_; }
  std::size_t bytes_out() const noexcept { return 32; }
  std::size_t reach() const noexcept { return 32; }

  ZARRBITS_AVX2 explicit unpack_16(const packing& p) noexcept {
    const plan<std::uint16_t>& l = plans16[p.bits];
    index_ = load(l.index);
    up_ = load(l.up);
    halves_ = dwords_from(l.dword[0]);
    bytes_in_ = 2u * p.bits;
    down_ = count(16u - p.bits - p.first_bit);
    keep_ = broadcast<16>(possible_bits(p));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const __m256i x = _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(load(in), halves_), index_);
    store(out, kept<masked>(shift_right16<is_signed>(_mm256_mullo_epi16(x, up_), down_), keep_));
  }

 private:
  __m256i index_, up_, keep_, halves_;
  __m128i down_;
  std::size_t bytes_in_;
};

// 16-bit components of 11, 13 and 14 bits: a window of 32 bits holds a pair, which goes up as one; the lower one is then brought
// to the top of its 16 bits.
//   |bbbbbbbbbbbaaaaaaaaaaa|..........|     the pair at the top (11 bits)
//   |.....bbbbbbbbbbb|aaaaaaaaaaa.....|     shifted by 16 - 11: taken for the lower lane
//   |bbbbbbbbbbb.....|aaaaaaaaaaa.....|     blended
template <bool is_signed, bool masked>
class unpack_16_pairs {
 public:
  static constexpr std::size_t components = 16, prefetch = 2;
  std::size_t bytes_in() const noexcept { return bytes_in_; }
  std::size_t bytes_out() const noexcept { return 32; }
  std::size_t reach() const noexcept { return 32; }

  ZARRBITS_AVX2 explicit unpack_16_pairs(const packing& p) noexcept {
    const plan<std::uint32_t>& l = plans32[2u * p.bits];
    index_ = load(l.index);
    up_ = load(l.up);
    halves_ = dwords_from(l.dword[0]);
    bytes_in_ = 2u * p.bits;
    apart_ = count(16u - p.bits);
    down_ = count(16u - p.bits - p.first_bit);
    keep_ = broadcast<16>(possible_bits(p));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    __m256i x = _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(load(in), halves_), index_);
    x = _mm256_sllv_epi32(x, up_);
    x = _mm256_blend_epi16(_mm256_srl_epi32(x, apart_), x, 0xaa);
    store(out, kept<masked>(shift_right16<is_signed>(x, down_), keep_));
  }

 private:
  __m256i index_, up_, keep_, halves_;
  __m128i apart_, down_;
  std::size_t bytes_in_;
};

// 16-bit components of 15 bits: the field lies in up to 3 bytes. Its first two, shifted down by 1 to 8 bits (the high half of a
// product with 2^15 to 2^8), and what follows them, shifted up to meet these (the low half of a product with the same factor).
struct plan15 {
  alignas(32) std::uint8_t low[32], high[32];
  alignas(32) std::uint16_t factor[16];
};

constexpr plan15 make_plan15() {
  plan15 p{};
  for (unsigned i = 0; i < 16; ++i) {
    // a field that begins with a byte is taken as the second byte of its window; before the first one there is nothing
    const unsigned at = i % 8 * 15, below = at % 8 == 0 ? 8 : at % 8;
    const int byte = static_cast<int>(at - below) / 8;
    const int bytes[3] = {at < below ? -1 : byte, at < below ? 0 : byte + 1, at < below ? 1 : byte + 2};
    const auto index = [](int b) { return static_cast<std::uint8_t>(b < 0 || b > 15 ? 0x80 : b); };
    p.low[2 * i] = index(bytes[0]);
    p.low[2 * i + 1] = index(bytes[1]);
    p.high[2 * i] = index(bytes[2]);
    p.high[2 * i + 1] = 0x80;
    p.factor[i] = static_cast<std::uint16_t>(1u << (16 - below));
  }
  return p;
}

constexpr plan15 the_plan15 = make_plan15();

template <bool is_signed, bool masked>
class unpack_16_from_15 {
 public:
  static constexpr std::size_t components = 16, prefetch = 2;
  std::size_t bytes_in() const noexcept { return 30; }
  std::size_t bytes_out() const noexcept { return 32; }
  std::size_t reach() const noexcept { return 15 + 16; }

  ZARRBITS_AVX2 explicit unpack_16_from_15(const packing& p) noexcept {
    down_ = count(1u - p.first_bit);
    keep_ = broadcast<16>(possible_bits(p));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const __m256i x = load_halves(in, in + 15), factor = load(the_plan15.factor);
    const __m256i low = _mm256_mulhi_epu16(_mm256_shuffle_epi8(x, load(the_plan15.low)), factor);
    const __m256i high = _mm256_mullo_epi16(_mm256_shuffle_epi8(x, load(the_plan15.high)), factor);
    const __m256i top = _mm256_slli_epi16(_mm256_or_si256(low, high), 1);
    store(out, kept<masked>(shift_right16<is_signed>(top, down_), keep_));
  }

 private:
  __m256i keep_;
  __m128i down_;
};

// 32-bit components whose window fits in 32 bits: up to 25 bits, 26 and 28.
template <bool is_signed, bool masked>
class unpack_32 {
 public:
  static constexpr std::size_t components = 8, prefetch = 2;
  std::size_t bytes_in() const noexcept { return bytes_in_; }
  std::size_t bytes_out() const noexcept { return 32; }
  std::size_t reach() const noexcept { return 32; }

  ZARRBITS_AVX2 explicit unpack_32(const packing& p) noexcept {
    const plan<std::uint32_t>& l = plans32[p.bits];
    index_ = load(l.index);
    up_ = load(l.up);
    halves_ = dwords_from(l.dword[0]);
    bytes_in_ = p.bits;
    down_ = count(32u - p.bits - p.first_bit);
    keep_ = broadcast<32>(possible_bits(p));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const __m256i x = _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(load(in), halves_), index_);
    store(out, kept<masked>(shift_right32<is_signed>(_mm256_sllv_epi32(x, up_), down_), keep_));
  }

 private:
  __m256i index_, up_, keep_, halves_;
  __m128i down_;
  std::size_t bytes_in_;
};

constexpr plan<std::uint64_t> plans_wide[] = {make_plan<std::uint64_t>(27, false), make_plan<std::uint64_t>(28, false),
                                              make_plan<std::uint64_t>(29, false), make_plan<std::uint64_t>(30, false),
                                              make_plan<std::uint64_t>(31, false)};

// 32-bit components of 27, 29, 30 and 31 bits: windows of 64 bits, and of these the upper 32.
template <bool is_signed, bool masked>
class unpack_32_wide {
 public:
  static constexpr std::size_t components = 8, prefetch = 2;
  std::size_t bytes_in() const noexcept { return bytes_in_; }
  std::size_t bytes_out() const noexcept { return 32; }
  std::size_t reach() const noexcept { return start_[3] + 16; }

  ZARRBITS_AVX2 explicit unpack_32_wide(const packing& p) noexcept {
    const plan<std::uint64_t>& l = plans_wide[p.bits - 27];
    const auto* index = reinterpret_cast<const std::byte*>(l.index);
    const auto* up = reinterpret_cast<const std::byte*>(l.up);
    // components 0 1 4 5, and 2 3 6 7
    for (int v = 0; v < 2; ++v) {
      index_[v] = load_halves(index + 16 * v, index + 32 + 16 * v);
      up_[v] = load_halves(up + 16 * v, up + 32 + 16 * v);
    }
    for (int i = 0; i < 4; ++i) start_[i] = l.start[i];
    bytes_in_ = p.bits;
    down_ = count(32u - p.bits - p.first_bit);
    keep_ = broadcast<32>(possible_bits(p));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    __m256i x = _mm256_shuffle_epi8(load_halves(in, in + start_[2]), index_[0]);
    __m256i y = _mm256_shuffle_epi8(load_halves(in + start_[1], in + start_[3]), index_[1]);
    x = _mm256_sllv_epi64(x, up_[0]);
    y = _mm256_sllv_epi64(y, up_[1]);
    const __m256i tops = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(x), _mm256_castsi256_ps(y), 0xdd));
    store(out, kept<masked>(shift_right32<is_signed>(tops, down_), keep_));
  }

 private:
  __m256i index_[2], up_[2], keep_;
  __m128i down_;
  std::size_t start_[4], bytes_in_;
};

// 64-bit components whose window fits in 64 bits: up to 57 bits, 58 and 60. There is no arithmetic shift of 64 bits; (x ^ s) - s
// extends the sign bit s.
template <bool is_signed, bool masked, bool joined>
class unpack_64_from {
 public:
  static constexpr std::size_t components = 8, prefetch = 4;
  std::size_t bytes_in() const noexcept { return bytes_in_; }
  std::size_t bytes_out() const noexcept { return 64; }
  std::size_t reach() const noexcept { return joined ? start_[2] + 32 : start_[3] + 16; }

  ZARRBITS_AVX2 explicit unpack_64_from(const packing& p) noexcept {
    const plan<std::uint64_t>& l = plans64[p.bits];
    for (int v = 0; v < 2; ++v) {
      index_[v] = load(l.index + 32 * v);
      up_[v] = load(l.up + 4 * v);
      halves_[v] = dwords_from(l.dword[v]);
    }
    for (int i = 0; i < 4; ++i) start_[i] = l.start[i];
    bytes_in_ = p.bits;
    down_ = count(64u - p.bits - p.first_bit);
    keep_ = broadcast<64>(~low_bits(p.first_bit));
    sign_ = broadcast<64>(std::uint64_t{1} << (p.first_bit + p.bits - 1));
    possible_ = broadcast<64>(possible_bits(p));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    if constexpr (joined) {
      store(out, half(_mm256_permutevar8x32_epi32(load(in), halves_[0]), 0));
      store(out + 32, half(_mm256_permutevar8x32_epi32(load(in + start_[2]), halves_[1]), 1));
    } else {
      store(out, half(load_halves(in, in + start_[1]), 0));
      store(out + 32, half(load_halves(in + start_[2], in + start_[3]), 1));
    }
  }

 private:
  ZARRBITS_AVX2_INLINE __m256i half(__m256i x, int v) const noexcept {
    x = _mm256_srl_epi64(_mm256_sllv_epi64(_mm256_shuffle_epi8(x, index_[v]), up_[v]), down_);
    x = kept<masked>(x, keep_);
    if constexpr (is_signed) x = kept<masked>(_mm256_sub_epi64(_mm256_xor_si256(x, sign_), sign_), possible_);
    return x;
  }

  __m256i index_[2], up_[2], halves_[2], keep_, sign_, possible_;
  __m128i down_;
  std::size_t start_[4], bytes_in_;
};

template <bool is_signed, bool masked>
using unpack_64 = unpack_64_from<is_signed, masked, true>;
template <bool is_signed, bool masked>
using unpack_64_apart = unpack_64_from<is_signed, masked, false>;

template <template <bool, bool> class Step>
void unpack(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (p.first_bit == 0 && !p.zero_above)
    return p.is_signed ? decode_steps<Step<true, false>>(p, in, out, n) : decode_steps<Step<false, false>>(p, in, out, n);
  return p.is_signed ? decode_steps<Step<true, true>>(p, in, out, n) : decode_steps<Step<false, true>>(p, in, out, n);
}

}  // namespace

void decode16(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.decode[1](p, in, out, n);
  if (p.bits <= 10 || p.bits == 12) return unpack<unpack_16>(p, in, out, n);
  if (p.bits <= 14) return unpack<unpack_16_pairs>(p, in, out, n);
  return unpack<unpack_16_from_15>(p, in, out, n);
}

void decode32(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.decode[2](p, in, out, n);
  if (p.bits <= 26 || p.bits == 28) return unpack<unpack_32>(p, in, out, n);
  return unpack<unpack_32_wide>(p, in, out, n);
}

void decode64(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few || p.bits == 59 || p.bits > 60) return portable_kernels.decode[3](p, in, out, n);
  return plans64[p.bits].joined ? unpack<unpack_64>(p, in, out, n) : unpack<unpack_64_apart>(p, in, out, n);
}

}  // namespace zarrbits::detail::avx2

#endif
