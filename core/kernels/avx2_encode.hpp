// SPDX-License-Identifier: BSL-1.0
//
// What encoders in vectors of 32 bytes share.
//
#ifndef ZARRBITS_CORE_KERNELS_AVX2_ENCODE_HPP
#define ZARRBITS_CORE_KERNELS_AVX2_ENCODE_HPP

#include "core/kernels/avx2.hpp"

#ifdef ZARRBITS_X86_KERNELS

namespace zarrbits::detail::avx2 {

// What is done with a component before it is joined. Checked unsigned components need no mask: any bit that it would take away is
// an error, and found.
enum class before { look, look_and_shift, mask, shift_and_mask, look_signed, look_signed_and_shift };

constexpr bool shifts(before b) noexcept {
  return b == before::look_and_shift || b == before::shift_and_mask || b == before::look_signed_and_shift;
}

template <unsigned width, before what>
class preparation {
 public:
  ZARRBITS_AVX2 explicit preparation(const packing& p) noexcept {
    const loss l = what_is_lost(p);
    bias_ = broadcast<width>(l.bias);
    dropped_ = broadcast<width>(l.dropped);
    mask_ = broadcast<width>(low_bits(p.bits));
    first_ = broadcast<lane>(p.first_bit);
  }

  // What lossless() will decide upon.
  ZARRBITS_AVX2_INLINE __m256i seen(__m256i x) const noexcept {
    if constexpr (!looks) return _mm256_setzero_si256();
    if constexpr (!is_signed) return x;
    if constexpr (width == 8) return _mm256_add_epi8(x, bias_);
    if constexpr (width == 16) return _mm256_add_epi16(x, bias_);
    if constexpr (width == 32) return _mm256_add_epi32(x, bias_);
    return _mm256_add_epi64(x, bias_);
  }
  ZARRBITS_AVX2_INLINE __m256i operator()(__m256i x) const noexcept {
    if constexpr (shifts(what)) {
      x = lane == 64 ? _mm256_srlv_epi64(x, first_) : _mm256_srlv_epi32(x, first_);
    }
    return !looks || is_signed ? _mm256_and_si256(x, mask_) : x;
  }

  ZARRBITS_AVX2_INLINE bool lossless(__m256i seen) const noexcept { return !looks || _mm256_testz_si256(seen, dropped_); }

 private:
  static constexpr bool is_signed = what == before::look_signed || what == before::look_signed_and_shift;
  static constexpr bool looks = what != before::mask && what != before::shift_and_mask;
  // Short components are shifted in lanes of 32 bits: what a neighbour leaves above one is masked, or zero, or found.
  static constexpr unsigned lane = width == 64 ? 64 : 32;

  __m256i bias_, dropped_, mask_, first_;
};

}  // namespace zarrbits::detail::avx2

#endif

#endif
