// SPDX-License-Identifier: BSL-1.0
//
// What threads find out about the chunks of one array.
//
#ifndef ZARRBITS_CHECK_CHUNK_RESULTS_HPP
#define ZARRBITS_CHECK_CHUNK_RESULTS_HPP

#include "check/finding_list.hpp"
#include "check/read_failure.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::checking {

// Chunks that one task reads: so many that the task is worth a place in the queue.
// A chunk that is stored, or a shard.
struct listed_chunk {
  std::uint64_t number = 0, bytes = 0;  // among all of the array; as stored
};

std::uint64_t bytes_of(const std::vector<listed_chunk>& list);

// Calls `visit` with parts of the list, each for one task, with their bytes and those of the largest one.
void for_each_batch(
    const std::vector<listed_chunk>& list,
    const std::function<void(std::vector<listed_chunk> batch, std::uint64_t bytes, std::uint64_t largest)>& visit);

// Callable from several threads, except for report().
class chunk_results {
 public:
  // `number`: the place of the chunk among all of the array, by which the first ones are reported.
  void add_failure(std::uint64_t number, std::string key, read_failure failure, std::uint64_t chunks = 1);
  void add_checked(std::uint64_t chunks, std::uint64_t bytes);
  void add_missing(std::uint64_t chunks);

  // Adds the counts to `array`, and `missing` chunks that were not listed; the first chunks of each kind to the findings, and,
  // unless chunks may be missing, that they are.
  void report(checked_array& array, std::uint64_t missing, bool allow_missing, finding_list& findings) const;

 private:
  struct failed_chunk {
    std::string key, reason;
  };
  struct failed_chunks {
    std::uint64_t count = 0;  // failures
    std::multimap<std::uint64_t, failed_chunk> first;
  };
  static void report(const failed_chunks& failed, finding_severity severity, const std::string& path, finding_list& findings);

  mutable std::mutex mutex_;
  failed_chunks damaged_, unchecked_;
  std::uint64_t damaged_count_ = 0, checked_count_ = 0, missing_count_ = 0, bytes_ = 0;  // chunks, bytes
};

}  // namespace zarrbits::checking

#endif
