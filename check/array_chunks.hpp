// SPDX-License-Identifier: BSL-1.0
//
// The chunks of an array in a store: which exist, and whether each can be decoded.
//
//   array_chunks chunks("/a", folder);     // throws if the metadata cannot be used
//   chunks.list(findings, max_objects);    // also keys that belong to nothing
//   chunks.sample(0.01, random);
//   chunks.submit(pool, memory, progress); // decodes in the threads of the pool
//   pool.finish();
//   chunks.report(options, findings);
//
#ifndef ZARRBITS_CHECK_ARRAY_CHUNKS_HPP
#define ZARRBITS_CHECK_ARRAY_CHUNKS_HPP

#include "array/extents.hpp"
#include "check/chunk_partition.hpp"
#include "check/chunk_results.hpp"
#include "check/sample.hpp"
#include "io/thread_pool.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zarrbits::checking {

class array_chunks {
 public:
  // Throws store_error, not_supported.
  array_chunks(std::string path, const zarr::store_folder& folder);
  array_chunks(const array_chunks&) = delete;
  array_chunks& operator=(const array_chunks&) = delete;

  const std::string& path() const noexcept { return result_.path; }
  const zarr::zarr_array& array() const noexcept { return array_; }

  // Finds the objects. Throws store_error, and not_supported if they are more than `max_objects`.
  void list(finding_list& findings, std::uint64_t max_objects);
  std::uint64_t listed() const noexcept { return objects_.size(); }
  void sample(double share, random_numbers& random);
  void select(chunk_partition& own) { own.select(objects_); }
  // The bytes of the objects to be read.
  std::uint64_t bytes() const { return bytes_of(objects_); }

  // Lets the pool read and decode the objects. `progress` is called in this thread, with the bytes of what was submitted.
  void submit(io::thread_pool& pool, std::uint64_t memory, const std::function<void(std::uint64_t bytes)>& progress);
  // After submit() and pool.finish(), or without them.
  checked_array report(const integrity_options& options, finding_list& findings);

 private:
  std::uint64_t chunks_within(const array::extents& object) const;
  void check_objects(const std::vector<listed_chunk>& batch, std::uint64_t max_chunks);
  void check_shard(const zarr::zarr_array& array, const listed_chunk& object, std::uint64_t max_chunks);
  void check_chunk(const zarr::zarr_array& array, const listed_chunk& object, const array::extents& chunk,
                   zarr::element_buffer& values);

  checked_array result_;
  const zarr::zarr_array array_;
  array::extents grid_;  // of the objects
  std::vector<listed_chunk> objects_;
  std::uint64_t listed_chunks_ = 0;  // chunks in the listed objects, if these have all that they may have
  bool is_listed_ = false;
  chunk_results results_;
};

}  // namespace zarrbits::checking

#endif
