// SPDX-License-Identifier: BSL-1.0
//
// The words that the portable kernels work on.
//
#ifndef ZARRBITS_CORE_KERNELS_PORTABLE_HPP
#define ZARRBITS_CORE_KERNELS_PORTABLE_HPP

#include "core/kernels/kernels.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

namespace zarrbits::detail::portable {

using word = std::uint64_t;

inline constexpr bool little = std::endian::native == std::endian::little;

// `lane` (of `width` bits) in every lane of a word.
constexpr word repeat(word lane, unsigned width) noexcept {
  word w = lane;
  for (unsigned n = width; n < 64; n *= 2) w |= w << n;
  return w;
}

inline word load_le(const std::byte* in) noexcept {
  word w;
  std::memcpy(&w, in, 8);
  return little ? w : __builtin_bswap64(w);
}

inline void store_le(std::byte* out, word w) noexcept {
  if (!little) w = __builtin_bswap64(w);
  std::memcpy(out, &w, 8);
}

// Only the first `n` <= 8 bytes.
inline word load_le(const std::byte* in, std::size_t n) noexcept {
  word w = 0;
  for (std::size_t i = 0; i < n; ++i) w |= std::to_integer<word>(in[i]) << (8 * i);
  return w;
}

inline void store_le(std::byte* out, word w, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(w >> (8 * i));
}

// Two words in a register of 128 bits, which every 64-bit CPU has; otherwise compilers use two registers. Code for single words
// can be written to work for these too.
using word_pair = word __attribute__((vector_size(16)));

}  // namespace zarrbits::detail::portable

#endif
