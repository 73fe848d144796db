// SPDX-License-Identifier: BSL-1.0
//
// AVX2's table, but bools are encoded with AVX-512's mask registers, which take them as they are (BW and VL: Skylake-SP and later).
//
// In vectors of 32 bytes all the same: those of 64 lower the clock of CPUs before Ice Lake, also for what runs next. Measured on Cascade
// Lake with encoders of 64 bytes: 1.2 to 1.5 times as fast, but all that followed took a seventh longer.
//
#define ZARRBITS_AVX512VL __attribute__((target("avx2,avx512f,avx512bw,avx512vl,prfchw")))
#define ZARRBITS_AVX512VL_INLINE __attribute__((target("avx2,avx512f,avx512bw,avx512vl,prfchw"), always_inline)) inline
#define ZARRBITS_STEPS ZARRBITS_AVX512VL
#include "core/kernels/avx2.hpp"

#ifdef ZARRBITS_X86_KERNELS

namespace zarrbits::detail {

namespace {

using namespace avx2;

// From the other end of the byte: the bytes of each eight are reversed before.
template <bool msb_first>
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
    if constexpr (msb_first)
      x = _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8)));
    __mmask32 bits = _mm256_test_epi8_mask(x, bit_);
    asm("" : "+k"(bits));  // or gcc puts masks that are stored side by side together first, which takes longer
    std::memcpy(out, &bits, 4);
  }

  __m256i dropped_, bit_;
};

bool encode_bools(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (n < few) return portable_kernels.encode_bool(p, in, out, n);
  return p.msb_first ? encode_steps<pack_1<true>>(p, in, out, n) : encode_steps<pack_1<false>>(p, in, out, n);
}

}  // namespace

const kernel_table avx512vl_kernels = {
    "avx512vl",
    {portable::swap<std::uint8_t>, avx2::swap16, avx2::swap32, avx2::swap64},
    {avx2::encode8, avx2::encode16, avx2::encode32, avx2::encode64},
    {avx2::decode8, avx2::decode16, avx2::decode32, avx2::decode64},
    encode_bools,
    avx2::decode_bool,
    {avx2::check8, avx2::check16, avx2::check32, avx2::check64},
    avx2::extend,
};

}  // namespace zarrbits::detail

#endif
