// SPDX-License-Identifier: BSL-1.0
//
// Makes and writes the chunks of a batch: checking, inflating, encoding, writing. Any thread does so.
//
// If a chunk cannot be made from its stored bytes, it is lost if the bytes are wrong, and read through libhdf5 if our code cannot
// decode them.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_BATCH_WORKER_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_BATCH_WORKER_HPP

#include "convert/from_hdf5/chunk_batch.hpp"
#include "convert/from_hdf5/chunk_transcoder.hpp"
#include "zarr/write/store_writer.hpp"

#include <zarrbits/convert.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

namespace zarrbits::conversion {

class zarr_chunk_sink;

class batch_worker {
 public:
  batch_worker(zarr::store_writer& out, const convert_options& options) : out_(out), options_(options) {}

  // Reports the results of the chunks to the batch's unit. Returns the bytes of the source that are done. Throws zarrbits::error.
  std::uint64_t work(chunk_batch& batch);

 private:
  struct one_chunk;
  // Strings that libhdf5 allocated for a chunk. All threads may hold some at the same time; only one may hold many.
  struct allocated_strings {
    std::shared_lock<std::shared_mutex> one_of_many;
    std::unique_lock<std::shared_mutex> alone;
    std::unique_ptr<hdf5::vlen_allocator> memory;
  };
  void make(one_chunk& c);
  bool from_range(one_chunk& c);
  bool from_stored(one_chunk& c);
  bool through_libhdf5(one_chunk& c);
  void record_lost_chunk(one_chunk& c);
  void put_readable_parts(one_chunk& c);
  compressors::buffer read_values(const chunk_transcoder& maker, const hdf5::chunk_source& data,
                                  const array::extents& chunk_index, allocated_strings& strings);

  zarr::store_writer& out_;
  const convert_options& options_;
  std::shared_mutex strings_mutex_;
};

}  // namespace zarrbits::conversion

#endif
