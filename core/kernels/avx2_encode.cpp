// SPDX-License-Identifier: BSL-1.0
//
// The encoders of encode_256.hpp for AVX2.
//
#define ZARRBITS_STEPS __attribute__((target("avx2,prfchw")))
#define ZARRBITS_STEPS_INLINE __attribute__((target("avx2,prfchw"), always_inline)) inline
#define ZARRBITS_STEPS_MASKED 0
#include "core/kernels/encode_256.hpp"

#ifdef ZARRBITS_X86_KERNELS

namespace zarrbits::detail::avx2 {

bool encode8(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<8>(p, in, out, n); }
bool encode16(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<16>(p, in, out, n); }
bool encode32(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<32>(p, in, out, n); }
bool encode64(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept { return encode<64>(p, in, out, n); }

}  // namespace zarrbits::detail::avx2

#endif
