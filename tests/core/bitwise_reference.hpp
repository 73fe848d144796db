// SPDX-License-Identifier: BSL-1.0
//
// What kernels have to give, bit by bit, as the codec's text says it. Slow, and simple enough to be read.
//
#ifndef ZARRBITS_TESTS_CORE_BITWISE_REFERENCE_HPP
#define ZARRBITS_TESTS_CORE_BITWISE_REFERENCE_HPP

#include "core/packing.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// A number from memory, byte by byte. Nothing here is shared with the library.
inline std::uint64_t number(const zarrbits::detail::packing& p, const std::byte* in) {
  std::uint64_t v = 0;
  const bool big = (std::endian::native == std::endian::big) != p.swap_memory;
  for (unsigned i = 0; i < p.size; ++i) {
    const unsigned at = big ? p.size - 1 - i : i;
    v |= std::to_integer<std::uint64_t>(in[at]) << (8 * i);
  }
  return v;
}

inline void put(const zarrbits::detail::packing& p, std::uint64_t v, std::byte* out) {
  const bool big = (std::endian::native == std::endian::big) != p.swap_memory;
  for (unsigned i = 0; i < p.size; ++i) out[big ? p.size - 1 - i : i] = static_cast<std::byte>(v >> (8 * i));
}

inline bool bit(const std::vector<std::byte>& bytes, std::size_t i) {
  return std::to_integer<unsigned>(bytes[i / 8]) >> (i % 8) & 1;
}

// What the text says: bit i of the sequence is bit i % 8 of byte i / 8, the lowest kept bit of a component first.
inline std::vector<std::byte> packed(const zarrbits::detail::packing& p, const std::byte* in, std::size_t n) {
  std::vector<std::byte> out((n * p.bits + 7) / 8);
  for (std::size_t i = 0; i < n; ++i)
    for (unsigned b = 0; b < p.bits; ++b)
      if (number(p, in + i * p.size) >> (p.first_bit + b) & 1) {
        const std::size_t at = i * p.bits + b;
        out[at / 8] |= static_cast<std::byte>(1 << (p.msb_first ? 7 - at % 8 : at % 8));
      }
  return out;
}

// And back: bits at first_bit, zeros below, the sign or zeros above.
inline std::uint64_t unpacked(const zarrbits::detail::packing& p, const std::vector<std::byte>& in, std::size_t i) {
  std::uint64_t v = 0;
  bool last = false;
  for (unsigned b = 0; b < p.bits; ++b) {
    std::size_t at = i * p.bits + b;
    if (p.msb_first) at = at / 8 * 8 + 7 - at % 8;
    last = bit(in, at);
    v |= std::uint64_t{last} << (p.first_bit + b);
  }
  const unsigned top = p.zero_above ? p.type_bits : 8u * p.size;
  for (unsigned b = p.first_bit + p.bits; b < top; ++b) v |= std::uint64_t{p.is_signed && last} << b;
  return v;
}

inline std::string describe(const zarrbits::detail::packing& p, std::size_t n) {
  return std::to_string(n) + " components of " + std::to_string(p.size) + " bytes, bits " + std::to_string(p.first_bit) + " + " +
         std::to_string(p.bits) + " of " + std::to_string(p.type_bits) + (p.is_signed ? ", signed" : "") +
         (p.swap_memory ? ", swapped" : "") + (p.zero_above ? ", zeros above" : "");
}

#endif
