// SPDX-License-Identifier: BSL-1.0
#include "repack/dataset_part.hpp"

namespace zarrbits::repacking {

array::extents dataset_part::chunk_shape() const {
  array::extents shape = chunks->grid().chunk;
  if (has_new_dimension) shape.insert(shape.begin(), 1);
  return shape;
}

array::box dataset_part::box_of(const array::extents& index) const {
  array::extents first = chunks->grid().start(index);
  if (has_new_dimension) first.insert(first.begin(), 0);
  for (std::size_t i = 0; i < first.size(); ++i) first[i] += place.first[i];
  return {std::move(first), chunk_shape()};
}

array::box dataset_part::local(const array::box& b) const {
  array::box result = b;
  for (std::size_t i = 0; i < b.first.size(); ++i) result.first[i] -= place.first[i];
  if (has_new_dimension) {
    result.first.erase(result.first.begin());
    result.shape.erase(result.shape.begin());
  }
  return result;
}

}  // namespace zarrbits::repacking
