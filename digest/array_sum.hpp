// SPDX-License-Identifier: BSL-1.0
//
// The digest of one array, from its chunks in any order: a sum, to which each chunk adds its part.
//
//   array_sum sum({array.type(), false}, array.shape(), array.fill());
//   sum.add({{0, 0}, {100, 100}}, chunk);   // any thread
//   sum.digest();                           // absent chunks have the fill value
//
#ifndef ZARRBITS_DIGEST_ARRAY_SUM_HPP
#define ZARRBITS_DIGEST_ARRAY_SUM_HPP

#include "array/box.hpp"
#include "digest/element_form.hpp"
#include "digest/row_polynomial.hpp"

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::digesting {

class array_sum {
 public:
  array_sum(element_form form, array::extents shape, zarr::element_buffer fill);

  const element_form& form() const noexcept { return form_; }
  const array::extents& shape() const noexcept { return shape_; }
  // Elements of a chunk in C order; those beyond the edge of the array do not count. Add each chunk once.
  void add(const array::box& chunk, zarr::element_buffer& values);
  // Like that, for a form that is_plain(); values are little endian.
  void add(const array::box& chunk, std::span<const std::byte> values);
  // For an array that gets longer while it is read, whose fill value is 0.
  void set_length(std::uint64_t length) { shape_.at(0) = length; }

  // 64 hexadecimal digits. Add nothing at the same time.
  std::string digest() const;
  // Its summands, by lane: what the chunks have added, and the sums of an array that has only fill values.
  lanes added() const { return sum_; }
  lanes fill() const;

 private:
  // Powers of the points at the place of a box: what its sum, counted from its first element, is multiplied by.
  lanes position(const array::extents& first) const;
  lanes sum_of(const std::byte* values, std::size_t axis, const array::extents& count, const std::vector<std::size_t>& strides,
               std::size_t shift) const;
  // The sum of a box whose elements are all the fill value.
  lanes fill_of(const array::box& b) const;
  lanes fill_row(std::uint64_t count) const;

  const element_form form_;
  array::extents shape_;
  std::vector<lanes> points_;    // of each axis
  lanes inverses_of_fill_;       // of the point of a period of the fill value, less 1
  std::vector<lanes> inverses_;  // of the points less 1
  const row_polynomial row_;
  std::vector<std::byte> fill_;  // a period: whole elements, and whole words; empty: all zero
  std::mutex mutex_;
  lanes sum_{0, 0};
};

// 64 hexadecimal digits, for the sums of an array.
std::string digest_of(const std::string& type_name, const array::extents& shape, const lanes& sums);

}  // namespace zarrbits::digesting

#endif
