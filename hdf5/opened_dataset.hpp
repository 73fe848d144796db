// SPDX-License-Identifier: BSL-1.0
//
// An open HDF5 dataset, as its metadata describe it: type, extent, layout, filters. No value is read.
//
#ifndef ZARRBITS_HDF5_OPENED_DATASET_HPP
#define ZARRBITS_HDF5_OPENED_DATASET_HPP

#include "hdf5/filters.hpp"
#include "hdf5/source_file.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace zarrbits::hdf5 {

struct opened_dataset {
  // Throws failure.
  opened_dataset(source_file& file, const source_object& object);

  source_file& file;
  const source_object& object;
  std::shared_ptr<const file_bytes> bytes;  // of its file, while the dataset is open
  handle dataset, stored_type, space, dcpl;
  type_description type;
  bool null = false;  // a null dataspace has no extent
  array::extents dims, max_dims;
  H5D_layout_t layout = H5D_CONTIGUOUS;
  array::extents chunk_in_file;  // extent of its chunks; empty: it has none, or they do not fit its dataspace
  pipeline filters;
  pipeline source_filters;  // virtual dataset: filters of its sources
  bool external = false;
  std::shared_ptr<const hdf5::external_dependencies> dependencies;  // what it needs from other files
  std::uint64_t stored_bytes = 0;
  std::size_t element_size = 0;       // in the stored type
  std::uint64_t element_in_file = 1;  // bytes of an element in the file

  // The type of one value: the element inside of array types.
  const type_description& leaf() const;
  // For a chunk of this stored size: throws corrupt_chunk if decoding would take far too much memory.
  void require_plausible_size(std::uint64_t stored) const;
};

}  // namespace zarrbits::hdf5

#endif
