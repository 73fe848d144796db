// SPDX-License-Identifier: BSL-1.0
//
// The AVX-512 table: encoding and decoding from the files beside this one, swaps and checks (which are bound by memory) from
// AVX2.
//
#include "core/kernels/avx512.hpp"

#ifdef ZARRBITS_X86_KERNELS

namespace zarrbits::detail {

const kernel_table avx512_kernels = {
    "avx512",
    {portable::swap<std::uint8_t>, avx2::swap16, avx2::swap32, avx2::swap64},
    {avx512::encode8, avx512::encode16, avx512::encode32, avx512::encode64},
    {avx512::decode8, avx512::decode16, avx512::decode32, avx512::decode64},
    avx512::encode_bool,
    avx512::decode_bool,
    {avx2::check8, avx2::check16, avx2::check32, avx2::check64},
    avx2::extend,
};

}  // namespace zarrbits::detail

#endif
