// SPDX-License-Identifier: BSL-1.0
//
// Decoding with AVX2, 32 bytes of components at a time. Each lane gets the bytes of its field (vpshufb, a *window*). A shift with
// a count per lane moves the field to the top of the lane, and one shift of all lanes moves it down to first_bit, with zeros or
// copies of the sign above it. 12 bits to 16:
//
//   |dddddddddddd|cccccccccccc|bbbbbbbbbbbb|aaaaaaaaaaaa|     6 bytes
//   |ddddddddddddcccc|ccccccccccccbbbb|bbbbbbbbbbbbaaaa|....aaaaaaaaaaaa|     (shown without the bits above) windows of 16 bits
//   |dddddddddddd....|cccccccccccc....|bbbbbbbbbbbb....|aaaaaaaaaaaa....|     to the top: vpmullw by 2^4 or 2^0
//   |....dddddddddddd|....cccccccccccc|....bbbbbbbbbbbb|....aaaaaaaaaaaa|     down
//
// With a count per lane, AVX2 can shift lanes of 32 and 64 bits directly, lanes of 16 bits only by multiplication, and bytes not
// at all.
//
#include "core/kernels/decode_windows.hpp"

#ifdef ZARRBITS_X86_KERNELS

namespace zarrbits::detail::avx2 {

namespace {

// Equal shifts of all lanes, by vectors and products: a shift by a count in a register takes a shuffle port on Intel.
template <bool is_signed>
ZARRBITS_AVX2_INLINE __m256i shift_right32(__m256i x, __m256i distance) noexcept {
  return is_signed ? _mm256_srav_epi32(x, distance) : _mm256_srlv_epi32(x, distance);
}

// Moves fields of 16-bit lanes from the top of the lane to `first_bit`. Unsigned fields that do not go to the bottom are moved in
// 32-bit lanes; a mask removes bits of the upper lane from the lower one.
template <bool is_signed, bool masked>
class down_16 {
 public:
  ZARRBITS_AVX2 explicit down_16(const packing& p) noexcept {
    distance_ = count(16u - p.bits - p.first_bit);
    lane_distance_ = broadcast<32>(16u - p.bits - p.first_bit);
    factor_ = broadcast<16>(std::uint64_t{1} << p.bits);
    keep_ = broadcast<16>(possible_bits(p) & (is_signed ? ~std::uint64_t{0} : low_bits(p.bits + p.first_bit)));
  }
  ZARRBITS_AVX2_INLINE __m256i operator()(__m256i x) const noexcept {
    if constexpr (masked && is_signed) return _mm256_and_si256(_mm256_sra_epi16(x, distance_), keep_);
    if constexpr (masked) return _mm256_and_si256(_mm256_srlv_epi32(x, lane_distance_), keep_);
    return is_signed ? _mm256_mulhi_epi16(x, factor_) : _mm256_mulhi_epu16(x, factor_);
  }

 private:
  __m256i lane_distance_, factor_, keep_;
  __m128i distance_;
};

// Removes impossible bits: only needed with first_bit or zero_above, as the shifts leave none otherwise.
template <bool masked>
ZARRBITS_AVX2_INLINE __m256i mask_possible(__m256i x, __m256i possible) noexcept {
  return masked ? _mm256_and_si256(x, possible) : x;
}

// Components of 16 to 64 bits whose field and the bits below it in its first byte fit in the component: of 16 bits up to 10 and
// 12, of 32 up to 25, 26 and 28, of 64 up to 57, 58 and 60. Unsigned fields of wide lanes need only go down and be masked, where
// first_bit is 0: a mask takes any port, shifts have two. There is no arithmetic shift of 64 bits; (x ^ s) - s extends the sign
// s.
template <unsigned width, halves placement, bool is_signed, bool masked>
class unpacker {
 public:
  static constexpr unsigned vectors = width == 64 ? 2 : 1;
  static constexpr std::size_t components = vectors * 256 / width, lines_in = 2 * vectors, lines_out = 2 * vectors;
  std::size_t bytes_in() const noexcept { return bytes_in_; }
  std::size_t bytes_out() const noexcept { return 32 * vectors; }
  std::size_t lead() const noexcept { return window_[0].lead(); }
  std::size_t reach() const noexcept { return window_[vectors - 1].reach(); }

  ZARRBITS_AVX2 explicit unpacker(const packing& p) noexcept : down_16_(p) {
    const window_plan<lane<width>>& l = window_plans<width>[p.bits];
    for (unsigned v = 0; v < vectors; ++v) {
      window_[v].prepare(l, v);
      shift_[v] = load((just_down ? l.down : l.up) + 256 / width * v);
    }
    bytes_in_ = components * p.bits / 8;
    constexpr unsigned lane = width == 64 ? 64 : 32;
    down_ = broadcast<lane>(width - p.bits - p.first_bit);
    keep_ = broadcast<width>(just_down ? low_bits(p.bits) : width == 64 ? ~low_bits(p.first_bit) : possible_bits(p));
    sign_ = broadcast<width>(std::uint64_t{1} << (p.first_bit + p.bits - 1));
    possible_ = broadcast<width>(possible_bits(p));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    for (unsigned v = 0; v < vectors; ++v) store(out + 32 * v, fields(window_[v](in), shift_[v]));
  }

 private:
  static constexpr bool just_down = width != 16 && !is_signed && !masked;

  ZARRBITS_AVX2_INLINE __m256i fields(__m256i x, __m256i shift) const noexcept {
    if constexpr (width == 16) return down_16_(_mm256_mullo_epi16(x, shift));
    if constexpr (just_down)
      return _mm256_and_si256(width == 32 ? _mm256_srlv_epi32(x, shift) : _mm256_srlv_epi64(x, shift), keep_);
    if constexpr (width == 32) return mask_possible<masked>(shift_right32<is_signed>(_mm256_sllv_epi32(x, shift), down_), keep_);
    x = mask_possible<masked>(_mm256_srlv_epi64(_mm256_sllv_epi64(x, shift), down_), keep_);
    return is_signed ? mask_possible<masked>(_mm256_sub_epi64(_mm256_xor_si256(x, sign_), sign_), possible_) : x;
  }

  window<placement> window_[vectors];
  __m256i shift_[vectors], down_, keep_, sign_, possible_;
  down_16<is_signed, masked> down_16_;
  std::size_t bytes_in_;
};

// Whole bytes, first_bit 0: vpshufb moves them to their place, with zeros above; signed ones of 16 and 32 bits to the top of the
// component, and a shift moves them down.
template <unsigned width, bool is_signed>
class unpacker_of_bytes {
 public:
  static constexpr unsigned vectors = width == 64 ? 2 : 1;
  static constexpr std::size_t components = vectors * 256 / width, lines_in = 2 * vectors, lines_out = 2 * vectors;
  std::size_t bytes_in() const noexcept { return bytes_in_; }
  std::size_t bytes_out() const noexcept { return 32 * vectors; }
  std::size_t lead() const noexcept { return static_cast<std::size_t>(-start_[0]); }
  std::size_t reach() const noexcept { return static_cast<std::size_t>(start_[vectors - 1] + 32); }

  ZARRBITS_AVX2 explicit unpacker_of_bytes(const packing& p) noexcept {
    const unsigned size = width / 8, field_bytes = p.bits / 8, leading_bytes = is_signed && width != 64 ? size - field_bytes : 0;
    alignas(32) std::uint8_t index[32];
    for (unsigned i = 0; i < 32; ++i) {
      const unsigned b = i % size - leading_bytes, first = i < 16 ? 16 - 16 / size * field_bytes : 0;
      index[i] = static_cast<std::uint8_t>(b < field_bytes ? first + i % 16 / size * field_bytes + b : 0x80);
    }
    index_ = load(index);
    bytes_in_ = components * field_bytes;
    for (unsigned v = 0; v < vectors; ++v) start_[v] = static_cast<std::ptrdiff_t>((2 * v + 1) * (16 / size) * field_bytes) - 16;
    down_ = broadcast<32>(width - p.bits);
    sign_ = broadcast<width>(std::uint64_t{1} << (p.bits - 1));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    for (unsigned v = 0; v < vectors; ++v) {
      __m256i x = _mm256_shuffle_epi8(load(in + start_[v]), index_);
      if constexpr (is_signed && width == 16) x = _mm256_srai_epi16(x, 8);
      if constexpr (is_signed && width == 32) x = _mm256_srav_epi32(x, down_);
      if constexpr (is_signed && width == 64) x = _mm256_sub_epi64(_mm256_xor_si256(x, sign_), sign_);
      store(out + 32 * v, x);
    }
  }

 private:
  __m256i index_, sign_, down_;
  std::ptrdiff_t start_[vectors];
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
  static constexpr std::size_t components = 16, lines_in = 2, lines_out = 2;
  std::size_t bytes_in() const noexcept { return bytes_in_; }
  std::size_t bytes_out() const noexcept { return 32; }
  std::size_t lead() const noexcept { return window_.lead(); }
  std::size_t reach() const noexcept { return window_.reach(); }

  ZARRBITS_AVX2 explicit unpack_16_pairs(const packing& p) noexcept : down_(p) {
    const window_plan<std::uint32_t>& l = window_plans<32>[2u * p.bits];
    window_.prepare(l, 0);
    up_ = load(l.up);
    bytes_in_ = 2u * p.bits;
    distance_ = broadcast<32>(16u - p.bits);
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    __m256i x = _mm256_sllv_epi32(window_(in), up_);
    store(out, down_(_mm256_blend_epi16(_mm256_srlv_epi32(x, distance_), x, 0xaa)));
  }

 private:
  window<halves::split> window_;
  __m256i up_, distance_;
  down_16<is_signed, masked> down_;
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
    // a field that begins at a byte is the second byte of its window; before the first field there is no byte
    const unsigned bit = i % 8 * 15, shift = bit % 8 == 0 ? 8 : bit % 8;
    const int skip = i < 8 ? 1 : 0;  // the load begins a byte before that of the lower half
    const int byte = static_cast<int>(bit - shift) / 8;
    const int bytes[3] = {bit < shift ? -1 : byte, bit < shift ? 0 : byte + 1, bit < shift ? 1 : byte + 2};
    const auto index = [&](int b) { return static_cast<std::uint8_t>(b < 0 || b > 14 ? 0x80 : b + skip); };
    p.low[2 * i] = index(bytes[0]);
    p.low[2 * i + 1] = index(bytes[1]);
    p.high[2 * i] = index(bytes[2]);
    p.high[2 * i + 1] = 0x80;
    p.factor[i] = static_cast<std::uint16_t>(1u << (16 - shift));
  }
  return p;
}

constexpr plan15 the_plan15 = make_plan15();

template <bool is_signed, bool masked>
class unpack_16_from_15 {
 public:
  static constexpr std::size_t components = 16, lines_in = 2, lines_out = 2;
  std::size_t bytes_in() const noexcept { return 30; }
  std::size_t bytes_out() const noexcept { return 32; }
  std::size_t lead() const noexcept { return 1; }
  std::size_t reach() const noexcept { return 31; }

  ZARRBITS_AVX2 explicit unpack_16_from_15(const packing& p) noexcept {
    down_ = count(1u - p.first_bit);
    keep_ = broadcast<16>(possible_bits(p));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    const __m256i x = load(in - 1), factor = load(the_plan15.factor);
    const __m256i low = _mm256_mulhi_epu16(_mm256_shuffle_epi8(x, load(the_plan15.low)), factor);
    const __m256i high = _mm256_mullo_epi16(_mm256_shuffle_epi8(x, load(the_plan15.high)), factor);
    const __m256i top = _mm256_slli_epi16(_mm256_or_si256(low, high), 1);
    if constexpr (masked)
      store(out, _mm256_and_si256(is_signed ? _mm256_sra_epi16(top, down_) : _mm256_srl_epi16(top, down_), keep_));
    if constexpr (!masked) store(out, is_signed ? _mm256_srai_epi16(top, 1) : _mm256_srli_epi16(top, 1));
  }

 private:
  __m256i keep_;
  __m128i down_;
};

// 32-bit components of 27, 29, 30 and 31 bits: windows of 64 bits, and of these the upper 32.
template <bool is_signed, bool masked>
class unpack_32_wide {
 public:
  static constexpr std::size_t components = 8, lines_in = 2, lines_out = 2;
  std::size_t bytes_in() const noexcept { return bytes_in_; }
  std::size_t bytes_out() const noexcept { return 32; }
  std::size_t lead() const noexcept { return 0; }
  std::size_t reach() const noexcept { return start_[3] + 16; }

  ZARRBITS_AVX2 explicit unpack_32_wide(const packing& p) noexcept {
    alignas(32) std::uint8_t index[2][32];
    alignas(32) std::uint64_t up[2][4];
    // components 0 1 4 5, and 2 3 6 7
    for (unsigned half = 0; half < 4; ++half) {
      const unsigned v = half % 2, upper = half / 2, begin = 2 * half * p.bits;
      start_[half] = begin / 8;
      for (unsigned i = 0; i < 2; ++i) {
        const unsigned bit = begin % 8 + i * p.bits;
        for (unsigned b = 0; b < 8; ++b) index[v][16 * upper + 8 * i + b] = static_cast<std::uint8_t>(bit / 8 + b);
        up[v][2 * upper + i] = 64 - p.bits - bit % 8;
      }
    }
    for (int v = 0; v < 2; ++v) {
      index_[v] = load(index[v]);
      up_[v] = load(up[v]);
    }
    bytes_in_ = p.bits;
    down_ = broadcast<32>(32u - p.bits - p.first_bit);
    keep_ = broadcast<32>(possible_bits(p));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    __m256i x = _mm256_shuffle_epi8(load_halves(in, in + start_[2]), index_[0]);
    __m256i y = _mm256_shuffle_epi8(load_halves(in + start_[1], in + start_[3]), index_[1]);
    x = _mm256_sllv_epi64(x, up_[0]);
    y = _mm256_sllv_epi64(y, up_[1]);
    const __m256i tops = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(x), _mm256_castsi256_ps(y), 0xdd));
    store(out, mask_possible<masked>(shift_right32<is_signed>(tops, down_), keep_));
  }

 private:
  __m256i index_[2], up_[2], down_, keep_;
  std::size_t start_[4], bytes_in_;
};

// 64-bit components of 59 and 61 to 63 bits: a field may lie in nine bytes. Its first eight are shifted down, its last eight up
// to meet them; these are one byte further on, in a load from there with the same windows.
//   |bbbbbbaa|aaaaaaaa| ... |aaaaa...|            bytes 7, 6 ... 0
//            |bbbbbbba|aaaaaaaa| ... |aaaaaaaa|   bytes 8, 7 ... 1
template <bool is_signed, bool masked>
class unpack_64_wide {
 public:
  static constexpr std::size_t components = 8, lines_in = 4, lines_out = 4;
  std::size_t bytes_in() const noexcept { return bytes_in_; }
  std::size_t bytes_out() const noexcept { return 64; }
  std::size_t lead() const noexcept { return 0; }
  std::size_t reach() const noexcept { return start_[3] + 17; }

  ZARRBITS_AVX2 explicit unpack_64_wide(const packing& p) noexcept {
    alignas(32) std::uint8_t index[64];
    alignas(32) std::uint64_t shift[8];
    for (unsigned half = 0; half < 4; ++half) {
      const unsigned begin = 2 * half * p.bits;
      start_[half] = begin / 8;
      for (unsigned i = 0; i < 2; ++i) {
        const unsigned bit = begin % 8 + i * p.bits;
        for (unsigned b = 0; b < 8; ++b) index[16 * half + 8 * i + b] = static_cast<std::uint8_t>(bit / 8 + b);
        shift[2 * half + i] = bit % 8;
      }
    }
    for (int v = 0; v < 2; ++v) {
      index_[v] = load(index + 32 * v);
      shift_down_[v] = load(shift + 4 * v);
      shift_up_[v] = _mm256_sub_epi64(_mm256_set1_epi64x(8), shift_down_[v]);
    }
    bytes_in_ = p.bits;
    first_ = _mm256_set1_epi64x(p.first_bit);
    field_ = broadcast<64>(low_bits(p.bits));
    sign_ = broadcast<64>(is_signed ? std::uint64_t{1} << (p.bits - 1) : 0);
    possible_ = broadcast<64>(possible_bits(p));
  }

  ZARRBITS_AVX2_INLINE void operator()(const std::byte* in, std::byte* out) const noexcept {
    for (int v = 0; v < 2; ++v) {
      const std::byte *low = in + start_[2 * v], *high = in + start_[2 * v + 1];
      const __m256i first = _mm256_shuffle_epi8(load_halves(low, high), index_[v]);
      const __m256i last = _mm256_shuffle_epi8(load_halves(low + 1, high + 1), index_[v]);
      __m256i x = _mm256_or_si256(_mm256_srlv_epi64(first, shift_down_[v]), _mm256_sllv_epi64(last, shift_up_[v]));
      x = _mm256_and_si256(x, field_);
      if constexpr (is_signed) x = _mm256_sub_epi64(_mm256_xor_si256(x, sign_), sign_);
      if constexpr (masked) x = _mm256_and_si256(_mm256_sllv_epi64(x, first_), possible_);
      store(out + 32 * v, x);
    }
  }

 private:
  __m256i index_[2], shift_down_[2], shift_up_[2], first_, field_, sign_, possible_;
  std::size_t start_[4], bytes_in_;
};

template <template <bool, bool> class Step>
void unpack(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (p.first_bit == 0 && !p.zero_above)
    return p.is_signed ? decode_steps<Step<true, false>>(p, in, out, n) : decode_steps<Step<false, false>>(p, in, out, n);
  return p.is_signed ? decode_steps<Step<true, true>>(p, in, out, n) : decode_steps<Step<false, true>>(p, in, out, n);
}

template <unsigned width, halves placement>
struct fitting {
  template <bool is_signed, bool masked>
  using step = unpacker<width, placement, is_signed, masked>;
};

template <unsigned width>
void unpack_fitting(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (p.bits % 8 == 0 && p.first_bit == 0 && !p.zero_above)
    return p.is_signed ? decode_steps<unpacker_of_bytes<width, true>>(p, in, out, n)
                       : decode_steps<unpacker_of_bytes<width, false>>(p, in, out, n);
  const halves placement = halves_of(128 / width * p.bits);
  if (placement == halves::split) return unpack<fitting<width, halves::split>::template step>(p, in, out, n);
  if constexpr (width == 64)
    if (placement == halves::two_loads) return unpack<fitting<64, halves::two_loads>::step>(p, in, out, n);
  if constexpr (width != 16) return unpack<fitting<width, halves::joined>::template step>(p, in, out, n);
}

}  // namespace

void decode16(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < min_components) return portable_kernels.decode[1](p, in, out, n);
  if (p.bits <= 10 || p.bits == 12) return unpack_fitting<16>(p, in, out, n);
  if (p.bits <= 14) return unpack<unpack_16_pairs>(p, in, out, n);
  return unpack<unpack_16_from_15>(p, in, out, n);
}

void decode32(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < min_components) return portable_kernels.decode[2](p, in, out, n);
  if (p.bits <= 26 || p.bits == 28) return unpack_fitting<32>(p, in, out, n);
  return unpack<unpack_32_wide>(p, in, out, n);
}

void decode64(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < min_components) return portable_kernels.decode[3](p, in, out, n);
  if (p.bits <= 58 || p.bits == 60) return unpack_fitting<64>(p, in, out, n);
  return unpack<unpack_64_wide>(p, in, out, n);
}

}  // namespace zarrbits::detail::avx2

#endif
