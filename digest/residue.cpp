// SPDX-License-Identifier: BSL-1.0
#include "digest/residue.hpp"

#include "digest/sha256_bytes.hpp"

#include <string>

namespace zarrbits::digesting {

residue power(residue base, residue exponent) noexcept {
  residue result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = multiply(result, base);
    base = multiply(base, base);
  }
  return result;
}

residue inverse(residue a) noexcept { return power(a, prime - 2); }

residue geometric_sum(residue x, residue inverse_of_difference, residue count) noexcept {
  return multiply(subtract(power(x, count), 1), inverse_of_difference);
}

residue point(unsigned lane, std::size_t axis) {
  const auto bytes = sha256_bytes("zarrbits digest 1, lane " + std::to_string(lane) + ", axis " + std::to_string(axis));
  residue low = 0, high = 0;
  for (std::size_t i = 16; i-- > 0;) {
    low = low << 8 | std::to_integer<std::uint8_t>(bytes[i]);
    high = high << 8 | std::to_integer<std::uint8_t>(bytes[16 + i]);
  }
  return add(reduce(low), reduce(add(reduce(high), reduce(high))));  // 2^128 is 2
}

std::string hexadecimal(residue a) {
  std::string digits(32, '0');
  for (std::size_t i = 32; i-- > 0; a >>= 4) digits[i] = "0123456789abcdef"[static_cast<unsigned>(a & 15)];
  return digits;
}

std::optional<residue> parse_hexadecimal(std::string_view digits) {
  if (digits.size() != 32) return {};
  residue a = 0;
  for (const char c : digits) {
    if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return {};
    a = a << 4 | static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  if (a >= prime) return {};
  return a;
}

}  // namespace zarrbits::digesting
