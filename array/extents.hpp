// SPDX-License-Identifier: BSL-1.0
//
// Shapes and indexes: one number for each dimension. C order: the last dimension varies fastest.
//
//   extents index(shape.size(), 0);
//   do visit(index);   // each element of an array that is not empty
//   while (next_index(index, shape));
//
#ifndef ZARRBITS_ARRAY_EXTENTS_HPP
#define ZARRBITS_ARRAY_EXTENTS_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::array {

using extents = std::vector<std::uint64_t>;

// Products; the largest number if they are larger.
std::uint64_t saturating_mul(std::uint64_t a, std::uint64_t b) noexcept;
std::uint64_t product(std::span<const std::uint64_t> numbers) noexcept;

// How many elements lie between neighbours along each dimension.
extents strides_of(std::span<const std::uint64_t> shape);
// The number of an index in C order, and the index with a number. Extents of unravel() are not 0.
std::uint64_t ravel(std::span<const std::uint64_t> index, std::span<const std::uint64_t> shape) noexcept;
extents unravel(std::uint64_t number, std::span<const std::uint64_t> shape);

// Changes an index to the next one in C order in [first, first + shape); without `first`, from 0. After the last: false, and the
// first one.
inline bool next_index(extents& index, std::span<const std::uint64_t> shape, std::span<const std::uint64_t> first = {}) noexcept {
  for (std::size_t d = index.size(); d-- > 0;) {
    const std::uint64_t begin = first.empty() ? 0 : first[d];
    if (++index[d] - begin < shape[d]) return true;
    index[d] = begin;
  }
  return false;
}

// "100x200", or "1/2" with another separator.
std::string joined_text(const extents& numbers, char separator = 'x');

}  // namespace zarrbits::array

#endif
