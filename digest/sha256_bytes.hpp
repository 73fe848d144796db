// SPDX-License-Identifier: BSL-1.0
//
// SHA-256 as bytes.
//
#ifndef ZARRBITS_DIGEST_SHA256_BYTES_HPP
#define ZARRBITS_DIGEST_SHA256_BYTES_HPP

#include "text/sha256.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace zarrbits::digesting {

inline std::array<std::byte, 32> sha256_bytes(std::string_view text) {
  text::sha256 sum;
  sum.add(text);
  const std::string digits = sum.hex();
  const auto value = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::array<std::byte, 32> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(value(digits[2 * i]) << 4 | value(digits[2 * i + 1]));
  return bytes;
}

}  // namespace zarrbits::digesting

#endif
