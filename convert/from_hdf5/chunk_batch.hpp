// SPDX-License-Identifier: BSL-1.0
//
// Chunks that the reading thread passes to a making thread: small ones by the dozen.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_CHUNK_BATCH_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_CHUNK_BATCH_HPP

#include "convert/from_hdf5/work_unit_state.hpp"
#include "convert/plan/array_plan.hpp"
#include "zarr/write/concurrent_shard.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

class chunk_prefetch;

// How a chunk gets to the thread that makes it.
struct chunk_input {
  enum class form_type {
    stored,       // bytes of H5Dread_chunk
    in_file,      // those bytes, still in the source's file
    range,        // values in a range of the source's file
    via_libhdf5,  // nothing: the thread itself reads the values through libhdf5
  } form = form_type::stored;
  array::extents index;
  compressors::buffer bytes = {};
  unsigned mask = 0;
  std::uint64_t offset = 0, size = 0;  // in_file, range
  std::size_t file = hdf5::no_file;    // in_file: see stored_chunk
  bool drop_if_fill = false;           // via_libhdf5
  std::string reason = {};             // why the chunk could not be decoded here, if it is via_libhdf5
  std::uint64_t progress = 0;
};

struct chunk_batch {
  static constexpr std::uint64_t enough_bytes = 256U << 10;
  static constexpr std::size_t enough_chunks = 64;
  // For chunks on a server: as many as one request can bring.
  static constexpr std::uint64_t enough_remote_bytes = 8U << 20;
  static constexpr std::size_t enough_remote_chunks = 4096;

  std::shared_ptr<work_unit_state> unit;
  std::size_t part = 0;
  std::shared_ptr<const array_plan> plan = {};
  std::vector<chunk_input> chunks = {};
  std::uint64_t cost = 0;                              // approximate bytes of memory
  std::shared_ptr<zarr::concurrent_shard> shard = {};  // the shard of all chunks; null if there are no shards
  array::extents shard_index = {};
  std::uint64_t turn = 0;
  bool is_remote = false;
  std::shared_ptr<const chunk_prefetch> prefetch = {};  // of remote chunks, when the batch is submitted

  const dataset_part& node() const { return unit->dataset->parts()[part]; }
  bool stopped() const { return unit->stopped(part); }
  // The batches of one shard wait for each other, so few are better: all that is copied to it is one batch if possible.
  bool is_full() const {
    return cost >= (is_remote ? enough_remote_bytes : enough_bytes) ||
           (!shard && chunks.size() >= (is_remote ? enough_remote_chunks : enough_chunks));
  }
  // Upper limit of the memory for a range that is copied.
  std::uint64_t memory_of_copy(std::uint64_t size) const { return is_remote ? size : shard ? 0 : size / 4; }
  void add(chunk_input chunk, std::uint64_t memory) {
    constexpr std::uint64_t bookkeeping_bytes = 256;
    cost += std::max(bookkeeping_bytes, memory);
    chunks.push_back(std::move(chunk));
  }
};

}  // namespace zarrbits::conversion

#endif
