// SPDX-License-Identifier: BSL-1.0
//
// The encoders of encode_256.hpp for AVX2.
//
#include "core/kernels/avx2.hpp"

#define ZARRBITS_STEPS_INLINE ZARRBITS_AVX2_INLINE
#define ZARRBITS_STEPS_MASKED 0
#include "core/kernels/encode_256.hpp"

#ifdef ZARRBITS_X86_KERNELS

namespace zarrbits::detail {

namespace {

bool encode_1(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode_bool(p, in, out, n); }

}  // namespace

namespace avx2 {

bool encode8(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<8>(p, in, out, n); }
bool encode16(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<16>(p, in, out, n); }
bool encode32(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<32>(p, in, out, n); }
bool encode64(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<64>(p, in, out, n); }

}  // namespace avx2

}  // namespace zarrbits::detail

#endif
