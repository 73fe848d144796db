// SPDX-License-Identifier: BSL-1.0
//
// A row of values as a polynomial: its words of 8 bytes are the coefficients.
//
//   const row_polynomial row(points);
//   const lanes value = row.evaluate(bytes, 4);   // the bytes begin in the middle of a word
//
#ifndef ZARRBITS_DIGEST_ROW_POLYNOMIAL_HPP
#define ZARRBITS_DIGEST_ROW_POLYNOMIAL_HPP

#include "digest/residue.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace zarrbits::digesting {

class row_polynomial {
 public:
  explicit row_polynomial(const lanes& points);

  // The sum of word k times the point to the k. Words are little endian; `shift` zero bytes, 0 to 7, come before the bytes, and
  // zeros fill the last word.
  lanes evaluate(std::span<const std::byte> bytes, std::size_t shift) const noexcept;

 private:
  // Powers are in a table, so that a word costs two products in each lane, and a reduction comes once in a block.
  static constexpr std::size_t block_words = 256;
  lanes block(const std::byte* words, std::size_t count) const noexcept;

  std::array<std::array<std::uint64_t, block_words>, lane_count> low_, high_;  // of the powers
  lanes next_;                                                                 // the point to the block_words
};

}  // namespace zarrbits::digesting

#endif
