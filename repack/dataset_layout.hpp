// SPDX-License-Identifier: BSL-1.0
//
// How a dataset lies in its file: what the rules of layouts look at.
//
#ifndef ZARRBITS_REPACK_DATASET_LAYOUT_HPP
#define ZARRBITS_REPACK_DATASET_LAYOUT_HPP

#include "array/extents.hpp"
#include "hdf5/filters.hpp"
#include "hdf5/source_file.hpp"
#include "repack/file_tree.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace zarrbits::repacking {

struct dataset_layout {
  H5D_layout_t layout = H5D_CONTIGUOUS;
  array::extents dims, max_dims, chunk;
  std::uint64_t element_bytes = 0;  // in the file
  bool linked_values = false;       // reference_map::has_linked_values()
  bool can_be_filtered = true;      // false: HDF5 keeps the values beside its chunks, which no filter sees
  hdf5::pipeline filters;
  bool can_decode = false, can_encode = false;  // chunks with these filters
  std::uint64_t stored_bytes = 0;
  std::uint64_t chunks = 0;                       // that were ever written
  std::optional<std::uint64_t> first_value = {};  // address in the file
  std::uint64_t last_index = 0;                   // address of the last piece of the index of its chunks; 0: none was read
};

struct file_contents {
  std::map<haddr_t, dataset_layout> datasets;  // by address
  std::uint64_t last_metadata = 0;             // address of the last metadata of any kind

  // Addresses of the first value of all datasets, and of the first chunk; the largest number without one.
  std::uint64_t first_value() const;
  std::uint64_t first_chunk() const;
};

// True if a dataset is far larger than what the files have of it: no work may grow with its size.
bool is_mostly_unwritten(std::uint64_t bytes, std::uint64_t stored_bytes);

// Throws hdf5::failure, with the path.
file_contents read_contents(const hdf5::source_file& file, const file_tree& tree);

}  // namespace zarrbits::repacking

#endif
