// SPDX-License-Identifier: BSL-1.0
//
// Boxes of elements in an array, and copies of the elements that two of them share.
//
//   const box shared = intersect(chunk, region);
//   copy_elements(values, chunk, region_values, region, shared, 4);   // elements of 4 bytes, in C order in each box
//
#ifndef ZARRBITS_ARRAY_BOX_HPP
#define ZARRBITS_ARRAY_BOX_HPP

#include "array/extents.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::array {

// Elements [first, first + shape) along each dimension.
struct box {
  extents first, shape;

  // Throws zarrbits::error if it is more than 2^64.
  std::uint64_t elements() const;
  bool empty() const;
  bool operator==(const box&) const = default;
};

box intersect(const box& a, const box& b);

// Elements first, first + step, ... along each dimension, `shape` of them. Steps are not 0.
struct strided_box {
  extents first, shape, step;

  // True if all of them lie in an array of this extent.
  bool is_within(std::span<const std::uint64_t> extent) const noexcept;
  // The smallest box that contains them. They lie in an array.
  box hull() const;
};

// Calls `visit` with each index in the box, in C order.
template <class Visit>
void for_each_index(const box& b, const Visit& visit) {
  if (b.empty()) return;
  extents index = b.first;
  do visit(std::as_const(index));
  while (next_index(index, b.shape, b.first));
}

// The number of elements before a box of a grid of boxes, if the boxes of `enclosing` are stored one after the other in C order.
std::uint64_t elements_before(const box& b, const box& enclosing);

// A dimension of a copy: how many elements, and how far they are apart in each box.
struct copy_step {
  std::uint64_t count, source_stride, target_stride;
};

// Where the elements are that two boxes share. Dimensions of one element are omitted, and those that are contiguous in both boxes
// are one.
class copy_plan {
 public:
  copy_plan(const box& of_from, const box& of_to, const box& shared)
      : copy_plan(of_from, {shared.first, shared.shape, extents(shared.first.size(), 1)}, of_to, shared.first) {}
  // `selected`: of the first box; `target`: the element of the second box that becomes the first of them.
  copy_plan(const box& of_from, const strided_box& selected, const box& of_to, const extents& target);
  const copy_step& row() const { return steps_.back(); }
  // Calls `visit(source_offset, target_offset)` with the first element of each row, whose elements are those of row().
  template <class Visit>
  void for_each_row(const Visit& visit) const {
    extents index(steps_.size() - 1, 0);
    std::uint64_t source_offset = source_offset_, target_offset = target_offset_;
    for (;;) {
      visit(source_offset, target_offset);
      std::size_t d = index.size();
      while (d > 0) {
        const copy_step& s = steps_[d - 1];
        source_offset += s.source_stride;
        target_offset += s.target_stride;
        if (++index[d - 1] < s.count) break;
        source_offset -= s.source_stride * s.count;
        target_offset -= s.target_stride * s.count;
        index[d - 1] = 0;
        --d;
      }
      if (d == 0) return;
    }
  }

 private:
  std::uint64_t source_offset_ = 0, target_offset_ = 0;  // of the first element
  std::vector<copy_step> steps_;                         // outermost first; at least one
};

// Calls `visit(source_offset, target_offset, count)` with the longest runs of shared elements that are contiguous in both boxes.
template <class Visit>
void for_each_run(const box& of_from, const box& of_to, const box& shared, const Visit& visit) {
  if (shared.empty()) return;
  const copy_plan plan(of_from, of_to, shared);
  const copy_step& row = plan.row();
  const bool is_contiguous = row.source_stride == 1 && row.target_stride == 1;
  plan.for_each_row([&](std::uint64_t source, std::uint64_t target) {
    if (is_contiguous) return visit(source, target, row.count);
    for (std::uint64_t i = 0; i < row.count; ++i)
      visit(source + i * row.source_stride, target + i * row.target_stride, std::uint64_t{1});
  });
}

// `from` and `to` have the elements of their boxes; `shared` is within both. `size`: bytes of an element.
void copy_elements(std::span<const std::byte> from, const box& of_from, std::span<std::byte> to, const box& of_to,
                   const box& shared, std::size_t size);
// `selected` of the one become the elements of the other from `target` on.
void copy_elements(std::span<const std::byte> from, const box& of_from, const strided_box& selected, std::span<std::byte> to,
                   const box& of_to, const extents& target, std::size_t size);
void copy_elements(std::span<const std::string> from, const box& of_from, std::span<std::string> to, const box& of_to,
                   const box& shared);

// All elements become this one.
void fill_elements(std::span<std::byte> values, std::span<const std::byte> one);

}  // namespace zarrbits::array

#endif
