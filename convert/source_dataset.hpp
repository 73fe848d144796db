// SPDX-License-Identifier: BSL-1.0
//
// An open HDF5 dataset: its type, extent, layout and filters, and its values as libhdf5 reads them.
//
#ifndef ZARRBITS_CONVERT_SOURCE_DATASET_HPP
#define ZARRBITS_CONVERT_SOURCE_DATASET_HPP

#include "convert/grid_options.hpp"
#include "convert/hdf5/chunk_index.hpp"
#include "convert/hdf5/filters.hpp"
#include "convert/hdf5/source.hpp"

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// What stands in the way of one dataset; the rest of the file goes on. what() is the reason.
struct skip_dataset : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Because of the filters that pipeline::missing() names.
skip_dataset missing_filter(const std::string& names);

// Calls `f`. What may cost a dataset, but not the conversion, as its reason; what `f` throws else is thrown on.
std::optional<std::string> reason_to_skip(const std::function<void()>& f);

struct source_dataset {
  // Throws h5::failure.
  source_dataset(source_file& file, const source_object& object);

  source_file& file;
  const source_object& object;
  h5::handle dataset, stored_type, space, dcpl;
  type_tree type;
  bool null = false;  // a null dataspace; then there is no extent
  std::vector<hsize_t> dims, max_dims;
  H5D_layout_t layout = H5D_CONTIGUOUS;
  pipeline filters;
  bool external = false;
  std::uint64_t stored_bytes = 0;
  std::size_t element_size = 0;  // of the stored type
  // After choose_grid(): of the source where it has chunks and no others are asked for, else a sensible one; and its shards.
  chunk_grid grid, shards;

  // The type of one value: what is inside of array types.
  const type_tree& leaf() const;
  // Throws skip_dataset, and convert_error where the shards are impossible.
  void choose_grid(const grid_request& chunk, const grid_request& shard);
  // The chunks of the source are those of the array.
  bool keeps_chunks() const { return layout == H5D_CHUNKED && !rechunked_; }
  bool sharded() const { return shards.chunk_elements() > 1; }
  bool nothing_stored() const;

  // Where the values begin in the file of file.descriptor(), where they are one range of it that needs no libhdf5 to be read.
  std::optional<std::uint64_t> contiguous_address() const;

  // Reads a block of the dataset, `size` bytes of the type `memory` for each element, into the corner of an array of extent `room`.
  void read_block(hid_t memory, std::size_t size, const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                  const std::vector<hsize_t>& room, buffer& out) const;
  // True where values of this chunk do not come back from the type that they have in memory.
  bool chunk_loses(const std::vector<hsize_t>& at) const;

  // For virtual datasets: whether a block can hold mapped values at all, and how many sources cannot be found. Of a virtual dataset of
  // terabytes with few sources, only mapped blocks are read. Without a test any block may be mapped.
  struct mapping {
    std::function<bool(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count)> holds_values = {};
    std::uint64_t missing_sources = 0;
  };
  mapping virtual_mapping() const;

 private:
  bool virtual_source_exists(std::size_t index) const;

  bool rechunked_ = false;
};

}  // namespace zarrbits::conversion

#endif
