// SPDX-License-Identifier: BSL-1.0
//
// The NEON table: byte swaps here, encoding and decoding of components of one and two bytes in the files beside this one. The
// rest are the portable functions.
//
#include "core/kernels/neon.hpp"

#ifdef ZARRBITS_NEON_KERNELS

namespace zarrbits::detail::neon {

namespace {

// Reverses the bytes of each component of a vector: one instruction for each size.
//   |d c b a|  ->  |a b c d|     vrev32q_u8
template <unsigned size>
ZARRBITS_NEON_INLINE uint8x16_t reversed(uint8x16_t x) noexcept {
  if constexpr (size == 2) return vrev16q_u8(x);
  if constexpr (size == 4) return vrev32q_u8(x);
  return vrev64q_u8(x);
}

template <unsigned size>
void swap(const std::byte* in, std::byte* out, std::size_t n) noexcept {
  for (; n >= 64 / size; n -= 64 / size, in += 64, out += 64) {
    const uint8x16_t a = load(in), b = load(in + 16), c = load(in + 32), d = load(in + 48);
    store(out, reversed<size>(a));
    store(out + 16, reversed<size>(b));
    store(out + 32, reversed<size>(c));
    store(out + 48, reversed<size>(d));
  }
  for (; n >= 16 / size; n -= 16 / size, in += 16, out += 16) store(out, reversed<size>(load(in)));
  portable_kernels.swap[log2_size(size)](in, out, n);
}

}  // namespace

void swap16(const std::byte* in, std::byte* out, std::size_t n) noexcept { swap<2>(in, out, n); }
void swap32(const std::byte* in, std::byte* out, std::size_t n) noexcept { swap<4>(in, out, n); }
void swap64(const std::byte* in, std::byte* out, std::size_t n) noexcept { swap<8>(in, out, n); }

}  // namespace zarrbits::detail::neon

namespace zarrbits::detail {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

const kernel_table neon_kernels = {
    "neon",
    {portable::swap<u8>, neon::swap16, neon::swap32, neon::swap64},
    {neon::encode8, neon::encode16, portable::encode<u32>, portable::encode<u64>},
    {neon::decode8, neon::decode16, portable::decode<u32>, portable::decode<u64>},
    neon::encode_bool,
    neon::decode_bool,
    {portable::check<u8>, portable::check<u16>, portable::check<u32>, portable::check<u64>},
    portable::extend,
};

}  // namespace zarrbits::detail

#endif
