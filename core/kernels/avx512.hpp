// SPDX-License-Identifier: BSL-1.0
//
// The common part of the AVX-512 kernels (BW, VL, VBMI, VBMI2, GFNI): one encoder and one decoder for all widths, and bool; the
// rest of the table is AVX2's. 64 bytes of components at a time: 8 components of k bits are k bytes, so that a vector of
// components is whole bytes when encoded.
//
// Two instructions make the difference. vpermb moves any byte to any place; vpmultishiftqb takes each byte of the result from any
// bit of its 64-bit lane.
//
// The last vectors are loaded and stored under masks, so that no access is outside of the caller's memory.
//
#ifndef ZARRBITS_CORE_KERNELS_AVX512_HPP
#define ZARRBITS_CORE_KERNELS_AVX512_HPP

#include "core/kernels/avx2.hpp"

#ifdef ZARRBITS_X86_KERNELS

#include <array>

#if defined(__GNUC__) && !defined(__clang__)
// gcc's own header leaves an unused variable uninitialised
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define ZARRBITS_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni,prfchw")))
#define ZARRBITS_AVX512_INLINE \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni,prfchw"), always_inline)) inline

namespace zarrbits::detail::avx512 {

avx2::encode_function encode8, encode16, encode32, encode64, encode_bool;
avx2::decode_function decode8, decode16, decode32, decode64, decode_bool;

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
ZARRBITS_AVX512_INLINE __m512i shift_right(__m512i x, __m128i distance) noexcept {
  if constexpr (width <= 16) return _mm512_srl_epi16(x, distance);
  if constexpr (width == 32) return _mm512_srl_epi32(x, distance);
  if constexpr (width == 64) return _mm512_srl_epi64(x, distance);
}

template <unsigned width>
ZARRBITS_AVX512_INLINE __m512i shift_right_signed(__m512i x, __m128i distance) noexcept {
  if constexpr (width <= 16) return _mm512_sra_epi16(x, distance);
  if constexpr (width == 32) return _mm512_sra_epi32(x, distance);
  if constexpr (width == 64) return _mm512_sra_epi64(x, distance);
}

ZARRBITS_AVX512_INLINE __m128i count(unsigned n) noexcept { return _mm_cvtsi32_si128(static_cast<int>(n)); }
ZARRBITS_AVX512_INLINE __m512i load(const void* address) noexcept { return _mm512_loadu_si512(address); }

// The lowest n <= 64 bytes.
ZARRBITS_AVX512_INLINE __mmask64 bytes(std::size_t n) noexcept { return low_bits(static_cast<unsigned>(n)); }

}  // namespace zarrbits::detail::avx512

#endif

#endif
