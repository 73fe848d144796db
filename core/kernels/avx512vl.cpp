// SPDX-License-Identifier: BSL-1.0
//
// AVX2's table, and what AVX-512 (BW and VL: Skylake-SP and later) does better in vectors of 32 bytes: encoding of bools, which mask registers
// take as they are, and the encoders of encode_256.hpp.
//
// Not in vectors of 64 bytes: they lower the clock of CPUs before Ice Lake, also for what runs next. Measured on Cascade Lake with
// encoders of 64 bytes: 1.2 to 1.5 times as fast as AVX2's, but all that followed took a seventh longer.
//
#define ZARRBITS_STEPS __attribute__((target("avx2,avx512f,avx512bw,avx512vl,prfchw")))
#define ZARRBITS_STEPS_INLINE __attribute__((target("avx2,avx512f,avx512bw,avx512vl,prfchw"), always_inline)) inline
#define ZARRBITS_STEPS_MASKED 1
#include "core/kernels/encode_256.hpp"

#ifdef ZARRBITS_X86_KERNELS

namespace zarrbits::detail {

namespace {

// One bit of bytes that are 0 or 1, or where nonzero is 1. The most significant bit first: as in AVX2 (avx2_bytes.cpp), for bytes would be
// reversed on the one port that makes masks, too.
template <bool msb_first>
class pack_1 {
 public:
  static constexpr std::size_t vectors = 2, components = 64, reach = 8, at_once = 4;
  std::size_t bytes_in() const noexcept { return 64; }
  std::size_t bytes_out() const noexcept { return 8; }

  ZARRBITS_STEPS explicit pack_1(const packing& p) noexcept {
    dropped_ = broadcast<8>(what_is_lost(p).dropped);
    bit_ = broadcast<8>(p.nonzero_is_true ? 0xff : 1);
  }

  ZARRBITS_STEPS_INLINE __m256i operator()(const std::byte* in, std::byte* out, __m256i seen) const noexcept {
    const __m256i x = load_once(in), y = load_once(in + 32);
    store_bits(x, out);
    store_bits(y, out + 4);
    return any(seen, x, y);
  }

  ZARRBITS_STEPS_INLINE bool lossless(__m256i seen) const noexcept { return _mm256_testz_si256(seen, dropped_); }

 private:
  ZARRBITS_STEPS_INLINE void store_bits(__m256i x, std::byte* out) const noexcept {
    std::uint32_t bits;  // the asm: or gcc puts masks that are stored side by side together first, which takes longer
    if constexpr (msb_first) {
      x = _mm256_sub_epi8(_mm256_setzero_si256(), x);
      x = _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8)));
      bits = static_cast<std::uint32_t>(_mm256_movemask_epi8(x));
      asm("" : "+r"(bits));
    } else {
      bits = _mm256_test_epi8_mask(x, bit_);
      asm("" : "+k"(bits));
    }
    std::memcpy(out, &bits, 4);
  }

  __m256i dropped_, bit_;
};

bool encode_1(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const bool is_0_or_1 = is_checked(p) && !p.is_signed && p.first_bit == 0;
  if (n < few || !(is_0_or_1 || (p.is_bool && !p.msb_first))) return avx2::encode_bool(p, in, out, n);
  return p.msb_first ? encode_steps<pack_1<true>>(p, in, out, n) : encode_steps<pack_1<false>>(p, in, out, n);
}

}  // namespace

const kernel_table avx512vl_kernels = {
    "avx512vl",
    {portable::swap<std::uint8_t>, avx2::swap16, avx2::swap32, avx2::swap64},
    {encode<8>, encode<16>, encode<32>, encode<64>},
    {avx2::decode8, avx2::decode16, avx2::decode32, avx2::decode64},
    encode_1,
    avx2::decode_bool,
    {avx2::check8, avx2::check16, avx2::check32, avx2::check64},
    avx2::extend,
};

}  // namespace zarrbits::detail

#endif
