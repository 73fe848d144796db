// SPDX-License-Identifier: BSL-1.0
//
// Boxes of elements in an array, and copies of the elements that two of them share.
//
//   const box shared = intersect(chunk, region);
//   copy_elements(values, chunk, region_values, region, shared, 4);   // elements of 4 bytes, in C order in each box
//
#ifndef ZARRBITS_CONVERT_FROM_ZARR_BOXES_HPP
#define ZARRBITS_CONVERT_FROM_ZARR_BOXES_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::conversion {

using extents = std::vector<std::uint64_t>;

// The product, or the largest number if that is larger.
std::uint64_t saturating_mul(std::uint64_t a, std::uint64_t b) noexcept;
// "100x200", or "1/2" with another sign between.
std::string joined_text(const extents& numbers, char separator = 'x');

// Elements [first, first + shape) along each dimension.
struct box {
  extents first, shape;

  // Throws zarrbits::error if it is more than 2^64.
  std::uint64_t elements() const;
  bool empty() const;
};

box intersect(const box& a, const box& b);
// The box of this index in a grid of boxes of one shape, within the array.
box cell_box(const extents& index, const extents& shape, const extents& array);
// The number of boxes of this shape along each dimension.
extents grid_of(const extents& array, const extents& shape);

// The number of an index in a grid, in C order; and back.
std::uint64_t number_of(const extents& index, const extents& grid);
extents index_of(std::uint64_t number, const extents& grid);
// Calls `callback` with the indices from `first` to `last`, both included, in C order.
void each_index(const extents& first, const extents& last, const std::function<void(const extents&)>& callback);
// The boxes of a grid that share elements with one that is not empty: first and last index.
struct index_range {
  extents first, last;
};
index_range overlapping_cells(const box& b, const extents& shape);

// The number of elements before a box of a grid of boxes, if the boxes of `enclosing` are stored one after the other in C order.
std::uint64_t elements_before(const box& b, const box& enclosing);

// `from` and `to` have the elements of their boxes; `shared` is within both. `size`: bytes of an element.
void copy_elements(std::span<const std::byte> from, const box& of_from, std::span<std::byte> to, const box& of_to,
                   const box& shared, std::size_t size);
void copy_elements(std::span<const std::string> from, const box& of_from, std::span<std::string> to, const box& of_to,
                   const box& shared);

// All elements become this one.
void fill_elements(std::span<std::byte> values, std::span<const std::byte> one);

}  // namespace zarrbits::conversion

#endif
