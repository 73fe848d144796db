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

}  // namespace zarrbits::digesting
