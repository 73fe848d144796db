// SPDX-License-Identifier: BSL-1.0
//
// A dataset of a source, whose values are those of a box of the copy: of all of it, or, if several files are joined, of a part.
//
#ifndef ZARRBITS_REPACK_DATASET_PART_HPP
#define ZARRBITS_REPACK_DATASET_PART_HPP

#include "array/box.hpp"
#include "hdf5/filters.hpp"
#include "hdf5/source_file.hpp"
#include "repack/stored_chunks.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::repacking {

struct dataset_part {
  std::shared_ptr<const hdf5::source_file> file;  // stays open with the part; null: its owner keeps it open
  std::string name;                               // of the file, for sentences, if there are several
  hdf5::handle dataset;
  std::optional<stored_chunks> chunks;  // not set: libhdf5 reads the values
  hdf5::pipeline filters;
  bool has_values = true;          // false: nothing was ever written
  array::box place;                // in the copy; without dimensions empty
  bool has_new_dimension = false;  // the copy has a first dimension that the dataset does not have

  // The box of a chunk in the copy, which may reach over the edge of the part; and what of it is in the part.
  array::box box_of(const array::extents& index) const;
  array::box inside(const array::extents& index) const { return array::intersect(box_of(index), place); }
  // The shape of the chunks in the copy.
  array::extents chunk_shape() const;
  // The chunks that share elements with a box of the copy, which is in the part and not empty.
  array::box chunks_over(const array::box& b) const { return chunks->grid().chunks_over(local(b)); }
  // A box of the copy as one of the dataset.
  array::box local(const array::box& b) const;
};

// The parts of a dataset, which are opened when they are needed.
struct part_list {
  std::vector<array::box> places;
  // The caller holds hdf5::lock, or is alone.
  std::function<std::shared_ptr<const dataset_part>(std::size_t)> open;
};

}  // namespace zarrbits::repacking

#endif
