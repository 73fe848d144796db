// SPDX-License-Identifier: BSL-1.0
//
// Where the chunks of a batch go: each under its own key, or to its place in a shard.
//
//   zarr_chunk_sink sink(out, node, plan, shard, turn);  // no shard: keys
//   sink.put(chunk_index, bytes);
//   sink.put_range(chunk_index, {offset, size});         // as it is in the source's file
//   const std::uint64_t overhead = sink.finish(true);
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_ZARR_CHUNK_SINK_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_ZARR_CHUNK_SINK_HPP

#include "convert/plan/array_plan.hpp"
#include "zarr/write/concurrent_shard.hpp"
#include "zarr/write/store_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// A range of the source's file, or of one of several files: see stored_chunk.
struct stored_range {
  std::uint64_t offset = 0, size = 0;
  std::size_t file = hdf5::no_file;
};

// Used by one thread. `node` is the array's path in the store. The batch has one turn at a shard.
class zarr_chunk_sink {
 public:
  zarr_chunk_sink(zarr::store_writer& out, const std::string& node, const array_plan& plan,
                  std::shared_ptr<zarr::concurrent_shard> shard, std::uint64_t turn);

  void put(const array::extents& chunk_index, compressors::buffer bytes);
  void put(const array::extents& chunk_index, std::span<const std::byte> bytes);
  // From a local file, or as a reference. Throws io::read_error; the chunk is then not written.
  void put_range(const array::extents& chunk_index, const stored_range& range);
  // Call once, when all chunks of the batch are done, or it is given up: then its part of the shard is dropped. Returns the
  // shard's overhead if this was the last batch, else 0.
  std::uint64_t finish(bool is_complete);

 private:
  struct pending_chunk {  // until the batch's turn
    std::size_t index_in_shard;
    compressors::buffer bytes = {};
    std::optional<stored_range> in_file = {};
  };
  std::vector<std::uint64_t> contiguous_sizes(std::size_t i) const;
  std::string key(const array::extents& chunk_index) const;
  std::size_t number_in_shard(const array::extents& chunk_index) const;

  zarr::store_writer& out_;
  const std::string& node_;
  const array_plan& plan_;
  const std::shared_ptr<zarr::concurrent_shard> shard_;
  const std::uint64_t turn_;
  std::vector<pending_chunk> pending_;
};

}  // namespace zarrbits::conversion

#endif
