// SPDX-License-Identifier: BSL-1.0
//
// Numbers modulo the prime 2^127 - 1, and pairs of them: a digest's sums are in two lanes.
//
//   const residue x = point(0, 1);        // lane 0, axis 1
//   residue sum = multiply(power(x, 7), 42);
//
#ifndef ZARRBITS_DIGEST_RESIDUE_HPP
#define ZARRBITS_DIGEST_RESIDUE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zarrbits::digesting {

// Below the prime, as all results of these functions are.
__extension__ typedef unsigned __int128 residue;
constexpr residue prime = (residue{1} << 127) - 1;

inline residue add(residue a, residue b) noexcept {
  const residue sum = a + b;
  return sum >= prime ? sum - prime : sum;
}
inline residue subtract(residue a, residue b) noexcept { return a >= b ? a - b : a + (prime - b); }

// Takes any number of 128 bits.
inline residue reduce(residue a) noexcept {
  const residue sum = (a & prime) + (a >> 127);
  return sum >= prime ? sum - prime : sum;
}

inline residue multiply(residue a, residue b) noexcept {
  const auto a0 = static_cast<std::uint64_t>(a), a1 = static_cast<std::uint64_t>(a >> 64), b0 = static_cast<std::uint64_t>(b),
             b1 = static_cast<std::uint64_t>(b >> 64);
  const residue low = residue{a0} * b0, middle = residue{a0} * b1 + residue{a1} * b0;  // a1 and b1 have 63 bits
  const residue sum = low + (middle << 64);
  const residue high = residue{a1} * b1 + (middle >> 64) + (sum < low);
  return add(reduce(sum), reduce(high << 1));  // 2^128 is 2
}

residue power(residue base, residue exponent) noexcept;
residue inverse(residue a) noexcept;

// 32 digits. Empty unless these are a number below the prime.
std::string hexadecimal(residue a);
std::optional<residue> parse_hexadecimal(std::string_view digits);

// 1 + x + ... + x^(count - 1), with the inverse of x - 1.
residue geometric_sum(residue x, residue inverse_of_difference, residue count) noexcept;

// The public point of a lane and an axis of arrays.
residue point(unsigned lane, std::size_t axis);

constexpr unsigned lane_count = 2;
using lanes = std::array<residue, lane_count>;

}  // namespace zarrbits::digesting

#endif
