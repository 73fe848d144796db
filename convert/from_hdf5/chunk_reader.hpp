// SPDX-License-Identifier: BSL-1.0
//
// Finds the chunks of a unit, and reads their stored bytes, in batches. Only one thread does this, under libhdf5's lock.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_CHUNK_READER_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_CHUNK_READER_HPP

#include "convert/from_hdf5/chunk_batch.hpp"
#include "zarr/write/store_writer.hpp"

#include <functional>
#include <vector>

namespace zarrbits::conversion {

class chunk_reader {
 public:
  // `submit` empties a batch.
  chunk_reader(zarr::store_writer& out, std::function<void(chunk_batch&)> submit) : out_(out), submit_(std::move(submit)) {}

  // Reads all chunks of a range, which belong to one part of a unit; `next` is the template of its batches. Throws
  // unsupported_dataset, hdf5::failure, corrupt_chunk.
  void read(chunk_batch& next, const chunk_range& range);

 private:
  void read_stored(chunk_batch& next, const chunk_range& range);
  void read_values(chunk_batch& next, const chunk_range& range);
  void add_gaps(chunk_batch& next, const chunk_range& range, std::uint64_t gaps, std::vector<std::uint64_t> visited);
  void enter_shard(chunk_batch& next, const array::extents& chunk_index);
  void leave_shard(chunk_batch& next);

  zarr::store_writer& out_;
  std::function<void(chunk_batch&)> submit_;
};

}  // namespace zarrbits::conversion

#endif
