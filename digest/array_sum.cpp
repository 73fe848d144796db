// SPDX-License-Identifier: BSL-1.0
#include "digest/array_sum.hpp"

#include "text/sha256.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace zarrbits::digesting {

namespace {

constexpr std::size_t word_bytes = 8;

std::vector<lanes> points_for(std::size_t rank) {
  std::vector<lanes> points;
  for (std::size_t axis = 0; axis < std::max<std::size_t>(1, rank); ++axis) points.push_back({point(0, axis), point(1, axis)});
  return points;
}

// A scalar is a row of one element.
array::extents as_rows(array::extents shape) {
  if (shape.empty()) shape.push_back(1);
  return shape;
}

}  // namespace

array_sum::array_sum(element_form form, array::extents shape, zarr::element_buffer fill)
    : form_(std::move(form)), shape_(std::move(shape)), points_(points_for(shape_.size())), row_(points_.back()) {
  std::vector<std::byte> storage;
  const std::span<const std::byte> element = form_.canonical(fill, storage);
  if (std::any_of(element.begin(), element.end(), [](std::byte b) { return b != std::byte{0}; })) {
    const std::size_t elements = word_bytes / std::gcd(element.size(), word_bytes);
    for (std::size_t i = 0; i < elements; ++i) fill_.insert(fill_.end(), element.begin(), element.end());
    for (const lanes& x : points_) inverses_.push_back({inverse(subtract(x[0], 1)), inverse(subtract(x[1], 1))});
    for (unsigned lane = 0; lane < lane_count; ++lane)
      inverses_of_fill_[lane] = inverse(subtract(power(points_.back()[lane], fill_.size() / word_bytes), 1));
  }
}

lanes array_sum::position(const array::extents& first) const {
  lanes result{1, 1};
  for (unsigned lane = 0; lane < lane_count; ++lane) {
    for (std::size_t d = 0; d < first.size(); ++d) {
      if (first[d] == 0) continue;
      const residue exponent = d + 1 < first.size() ? residue{first[d]} : residue{first[d]} * form_.size() / word_bytes;
      result[lane] = multiply(result[lane], power(points_[d][lane], exponent));
    }
  }
  return result;
}

lanes array_sum::sum_of(const std::byte* values, std::size_t axis, const array::extents& count,
                        const std::vector<std::size_t>& strides, std::size_t shift) const {
  if (axis + 1 == count.size()) return row_.evaluate({values, static_cast<std::size_t>(count[axis]) * form_.size()}, shift);
  lanes result{0, 0};
  for (std::size_t i = static_cast<std::size_t>(count[axis]); i-- > 0;) {
    const lanes inner = sum_of(values + i * strides[axis], axis + 1, count, strides, shift);
    for (unsigned lane = 0; lane < lane_count; ++lane)
      result[lane] = digesting::add(multiply(result[lane], points_[axis][lane]), inner[lane]);
  }
  return result;
}

// The first `count` elements of a row.
lanes array_sum::fill_row(std::uint64_t count) const {
  const std::uint64_t per_period = fill_.size() / form_.size(), periods = count / per_period;
  const std::size_t rest = static_cast<std::size_t>(count % per_period) * form_.size();
  const lanes period = row_.evaluate(fill_, 0), last = row_.evaluate(std::span(fill_).first(rest), 0);
  lanes result;
  for (unsigned lane = 0; lane < lane_count; ++lane) {
    const residue x = power(points_.back()[lane], fill_.size() / word_bytes);
    result[lane] = digesting::add(multiply(period[lane], geometric_sum(x, inverses_of_fill_[lane], periods)),
                                  multiply(last[lane], power(x, periods)));
  }
  return result;
}

lanes array_sum::fill_of(const array::box& b) const {
  if (fill_.empty()) return {0, 0};
  const std::size_t last = b.first.size() - 1;
  const lanes end = fill_row(b.first[last] + b.shape[last]), begin = fill_row(b.first[last]);
  lanes result;
  for (unsigned lane = 0; lane < lane_count; ++lane) {
    result[lane] = subtract(end[lane], begin[lane]);
    for (std::size_t d = 0; d < last; ++d) {
      const residue x = points_[d][lane];
      result[lane] = multiply(result[lane], multiply(power(x, b.first[d]), geometric_sum(x, inverses_[d][lane], b.shape[d])));
    }
  }
  return result;
}

void array_sum::add(const array::box& chunk, zarr::element_buffer& values) {
  std::vector<std::byte> storage;
  add(chunk, form_.canonical(values, storage));
}

void array_sum::add(const array::box& chunk, std::span<const std::byte> values) {
  const array::extents shape = as_rows(shape_), stored = as_rows(chunk.shape);
  array::box inside{chunk.first, stored};
  if (inside.first.empty()) inside.first.push_back(0);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (inside.first[d] >= shape[d]) return;
    inside.shape[d] = std::min(stored[d], shape[d] - inside.first[d]);
  }
  if (array::saturating_mul(array::product(stored), form_.size()) != values.size())
    throw zarr::store_error("a chunk has " + std::to_string(values.size()) + " bytes, and not those of its elements");
  std::vector<std::size_t> strides;
  for (const std::uint64_t s : array::strides_of(stored)) strides.push_back(static_cast<std::size_t>(s) * form_.size());
  const std::size_t shift = static_cast<std::size_t>(residue{inside.first.back()} * form_.size() % word_bytes);
  const lanes value = sum_of(values.data(), 0, inside.shape, strides, shift), factor = position(inside.first),
              instead = fill_of(inside);
  const std::lock_guard lock(mutex_);
  for (unsigned lane = 0; lane < lane_count; ++lane)
    sum_[lane] = digesting::add(sum_[lane], subtract(multiply(value[lane], factor[lane]), instead[lane]));
}

lanes array_sum::fill() const {
  const array::extents shape = as_rows(shape_);
  return fill_of({array::extents(shape.size(), 0), shape});
}

std::string array_sum::digest() const {
  const lanes instead = fill();
  return digest_of(form_.name(), shape_, {digesting::add(sum_[0], instead[0]), digesting::add(sum_[1], instead[1])});
}

std::string digest_of(const std::string& type_name, const array::extents& shape, const lanes& sums) {
  std::string header = "zarrbits digest 1\ntype " + type_name + "\nshape";
  for (const std::uint64_t n : shape) header += " " + std::to_string(n);
  header += "\nsum";
  for (const residue sum : sums) header += " " + hexadecimal(sum);
  text::sha256 line;
  line.add(header + "\n");
  return line.hex();
}

}  // namespace zarrbits::digesting
