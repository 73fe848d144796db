// SPDX-License-Identifier: BSL-1.0
//
// A dataset of the source and its copy.
//
#ifndef ZARRBITS_REPACK_DATASET_PAIR_HPP
#define ZARRBITS_REPACK_DATASET_PAIR_HPP

#include "array/box.hpp"
#include "array/chunk_grid.hpp"
#include "repack/layout_rules.hpp"
#include "repack/stored_chunks.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace zarrbits::repacking {

struct dataset_pair {
  const tree_object& object;
  const dataset_layout& layout;
  const dataset_change* change;  // null: its chunks are copied
  hdf5::handle source, copy, type;
  std::optional<stored_chunks> chunks;  // of the source
  array::chunk_grid grid;               // of the copy; without chunks, pieces
  hdf5::pipeline filters;               // of the copy

  bool has_chunks = false;  // the copy

  std::uint64_t chunk_bytes() const { return array::saturating_mul(grid.chunk_elements(), layout.element_bytes); }
  std::uint64_t source_chunk_bytes() const {
    return array::saturating_mul(chunks->grid().chunk_elements(), layout.element_bytes);
  }
  // Numbers of the chunks of the copy that get values, sorted.
  std::vector<std::uint64_t> needed_chunks() const;
};

// The dataspace of values in memory.
hdf5::handle space_of(const array::extents& shape);
// Selects a box of a dataset, if it has dimensions.
hdf5::handle selected_space(hid_t dataset, const array::box& b);

}  // namespace zarrbits::repacking

#endif
