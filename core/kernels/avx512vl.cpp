// SPDX-License-Identifier: BSL-1.0
//
// AVX2's table, and what AVX-512 (BW and VL: Skylake-SP and later) does better in vectors of 32 bytes:
//
// - encoding of bools, which mask registers take as they are (not with the most significant bit first: bytes would have to be reversed
//   before, on the one port that makes masks too);
// - encoding of 10 and 14 of 16 bits, 20 and 28 of 32: a rotation takes first_bit along, and one store takes all bytes of a vector.
//   10 of 16 bits from bit 2 on:
//
//   |..dddddddddd..|..cccccccccc..|..bbbbbbbbbb..|..aaaaaaaaaa..|   a lane of 64 bits (two bits are drawn as one)
//   |......ddddddddddcccccccccc..|......bbbbbbbbbbaaaaaaaaaa..|     neighbours joined: vpmaddwd by (1, 2^10)
//   |........ddddddddddcccccccccc|bbbbbbbbbbaaaaaaaaaa........|     vprolvd
//   |................ddddddddddccccccccccbbbbbbbbbbaaaaaaaaaa|      vpsrlq
//   |HHHHHGGGGGFFFFFEEEEE|DDDDDCCCCCBBBBBAAAAA|                    the 5 bytes of each lane: vpshufb in halves, vpermw
//
// Not in vectors of 64 bytes: they lower the clock of CPUs before Ice Lake, also for what runs next. Measured on Cascade Lake with
// encoders of 64 bytes: 1.2 to 1.5 times as fast, but all that followed took a seventh longer.
//
#define ZARRBITS_AVX512VL __attribute__((target("avx2,avx512f,avx512bw,avx512vl,prfchw")))
#define ZARRBITS_AVX512VL_INLINE __attribute__((target("avx2,avx512f,avx512bw,avx512vl,prfchw"), always_inline)) inline
#define ZARRBITS_STEPS ZARRBITS_AVX512VL
#include "core/kernels/avx2_encode.hpp"

#ifdef ZARRBITS_X86_KERNELS

namespace zarrbits::detail {

namespace {

using namespace avx2;

class pack_1 {
 public:
  static constexpr std::size_t vectors = 2, components = 64, reach = 8, at_once = 4;
  std::size_t bytes_in() const noexcept { return 64; }
  std::size_t bytes_out() const noexcept { return 8; }

  ZARRBITS_AVX512VL explicit pack_1(const packing& p) noexcept {
    dropped_ = broadcast<8>(what_is_lost(p).dropped);
    bit_ = broadcast<8>(p.nonzero_is_true ? 0xff : 1);
  }

  ZARRBITS_AVX512VL_INLINE __m256i operator()(const std::byte* in, std::byte* out) const noexcept {
    const __m256i x = load_once(in), y = load_once(in + 32);
    store_bits(x, out);
    store_bits(y, out + 4);
    return _mm256_or_si256(x, y);
  }

  ZARRBITS_AVX512VL_INLINE bool lossless(__m256i seen) const noexcept { return _mm256_testz_si256(seen, dropped_); }

 private:
  ZARRBITS_AVX512VL_INLINE void store_bits(__m256i x, std::byte* out) const noexcept {
    __mmask32 bits = _mm256_test_epi8_mask(x, bit_);
    asm("" : "+k"(bits));  // or gcc puts masks that are stored side by side together first, which takes longer
    std::memcpy(out, &bits, 4);
  }

  __m256i dropped_, bit_;
};

struct words_plan {
  alignas(32) std::uint8_t index[32];   // vpshufb
  alignas(32) std::uint16_t words[16];  // vpermw
};

// Lanes of 8 bytes of which so many are kept: of a half, as many words.
constexpr words_plan make_words_plan(unsigned kept) {
  words_plan p{};
  for (unsigned i = 0; i < 32; ++i) p.index[i] = static_cast<std::uint8_t>(i % 16 < 2 * kept ? i % 16 / kept * 8 + i % 16 % kept : 0x80);
  // what is behind the words of both halves is not used
  for (unsigned i = 0; i < 16; ++i) p.words[i] = static_cast<std::uint16_t>(i / kept * 8 + i % kept);
  return p;
}

constexpr words_plan words_of_5 = make_words_plan(5), words_of_7 = make_words_plan(7);

template <unsigned width, before prepare>
class packer {
 public:
  static constexpr std::size_t vectors = 1, components = 256 / width, reach = 32, at_once = 4;
  std::size_t bytes_in() const noexcept { return 32; }
  std::size_t bytes_out() const noexcept { return bytes_out_; }

  ZARRBITS_AVX512VL explicit packer(const packing& p) noexcept : prepared_(p) {
    bytes_out_ = components * p.bits / 8;
    kept_ = broadcast<width>(low_bits(p.bits) << p.first_bit);
    weights_ = _mm256_set1_epi32(1 | 1 << (p.bits % 16 + 16));
    const unsigned joined = 32 / width * p.bits;  // bits of a 32-bit lane
    turn_ = _mm256_set1_epi64x(static_cast<long long>(std::uint64_t{32u - p.first_bit} << 32 | (32u - joined - p.first_bit)));
    down_ = _mm256_set1_epi64x(32 - joined);
    const words_plan& l = joined == 20 ? words_of_5 : words_of_7;
    index_ = load(l.index);
    words_ = load(l.words);
  }

  ZARRBITS_AVX512VL_INLINE __m256i operator()(const std::byte* in, std::byte* out) const noexcept {
    __m256i x = load_once(in);
    const __m256i seen = prepared_.seen(x);
    if constexpr (prepare != before::look) x = _mm256_and_si256(x, kept_);
    if constexpr (width == 16) x = _mm256_madd_epi16(x, weights_);
    x = _mm256_srlv_epi64(_mm256_rolv_epi32(x, turn_), down_);
    store(out, _mm256_permutexvar_epi16(words_, _mm256_shuffle_epi8(x, index_)));
    return seen;
  }

  ZARRBITS_AVX512VL_INLINE bool lossless(__m256i seen) const noexcept { return prepared_.lossless(seen); }

 private:
  preparation<width, prepare> prepared_;
  __m256i kept_, weights_, turn_, down_, index_, words_;
  std::size_t bytes_out_;
};

template <unsigned width>
bool encode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const bool of_5_or_7_bytes = p.bits == 5 * width / 8 || p.bits == 7 * width / 8;
  // vpmaddwd takes bit 15 for a sign
  if (n < few || !of_5_or_7_bytes || (width == 16 && p.bits + p.first_bit == 16)) return avx2_kernels.encode[log2_size(width / 8)](p, in, out, n);
  if (!is_checked(p)) return encode_steps<packer<width, before::mask>>(p, in, out, n);
  return p.is_signed ? encode_steps<packer<width, before::look_signed>>(p, in, out, n) : encode_steps<packer<width, before::look>>(p, in, out, n);
}

bool encode_bools(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return n < few || p.msb_first ? avx2::encode_bool(p, in, out, n) : encode_steps<pack_1>(p, in, out, n);
}

}  // namespace

const kernel_table avx512vl_kernels = {
    "avx512vl",
    {portable::swap<std::uint8_t>, avx2::swap16, avx2::swap32, avx2::swap64},
    {avx2::encode8, encode<16>, encode<32>, avx2::encode64},
    {avx2::decode8, avx2::decode16, avx2::decode32, avx2::decode64},
    encode_bools,
    avx2::decode_bool,
    {avx2::check8, avx2::check16, avx2::check32, avx2::check64},
    avx2::extend,
};

}  // namespace zarrbits::detail

#endif
