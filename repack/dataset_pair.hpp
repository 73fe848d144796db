// SPDX-License-Identifier: BSL-1.0
//
// A dataset of the source, or of several joined ones, and its copy.
//
#ifndef ZARRBITS_REPACK_DATASET_PAIR_HPP
#define ZARRBITS_REPACK_DATASET_PAIR_HPP

#include "array/box.hpp"
#include "array/chunk_grid.hpp"
#include "repack/dataset_part.hpp"
#include "repack/layout_rules.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace zarrbits::repacking {

struct dataset_pair {
  const std::string& path;
  const dataset_layout& layout;  // of the source; of joined ones, of the whole
  const dataset_change* change;  // null: its chunks are copied
  part_list parts;
  hdf5::handle copy, type;
  array::chunk_grid grid = {};                   // of the copy; without chunks, pieces
  hdf5::pipeline filters = {};                   // of the copy
  bool has_chunks = false;                       // the copy
  bool has_several_files = false;                // the parts are of different files
  std::uint64_t largest_source_chunk_bytes = 0;  // 0: there are no chunks

  // Sets `grid`, `filters` and `has_chunks` by the copy.
  void describe_copy();
  std::uint64_t chunk_bytes() const { return array::saturating_mul(grid.chunk_elements(), layout.element_bytes); }
  // False: all chunks get another shape, or other filters.
  bool keeps_chunks() const { return !change || change->keeps_chunks(); }
  // True if stored chunks of a part can be chunks of the copy, and then, if this one can.
  bool keeps_chunks_of(const dataset_part& part) const;
  bool keeps_chunk(const dataset_part& part, const array::extents& index) const;
  // Adds the numbers of the chunks of the copy that share elements with a box.
  void add_chunks_over(const array::box& b, std::vector<std::uint64_t>& numbers) const;
  // Numbers of the chunks of the copy that get values, of a part or of all parts, sorted.
  std::vector<std::uint64_t> needed_chunks(const dataset_part& part) const;
  std::vector<std::uint64_t> needed_chunks() const;
};

// Sorted, and each once.
void make_unique(std::vector<std::uint64_t>& numbers);

// The dataspace of values in memory.
hdf5::handle space_of(const array::extents& shape);
// Selects a box of a dataset, if it has dimensions.
hdf5::handle selected_space(hid_t dataset, const array::box& b);

}  // namespace zarrbits::repacking

#endif
