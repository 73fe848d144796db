// SPDX-License-Identifier: BSL-1.0
//
// What threads find out about the chunks of one array.
//
#ifndef ZARRBITS_CHECK_CHUNK_RESULTS_HPP
#define ZARRBITS_CHECK_CHUNK_RESULTS_HPP

#include "check/finding_list.hpp"
#include "check/read_failure.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace zarrbits::checking {

// Chunks that one task reads: so many that the task is worth a place in the queue.
constexpr std::uint64_t max_batch_bytes = 1U << 20, max_batch_objects = 256;

// Callable from several threads, except for report().
class chunk_results {
 public:
  // `number`: the place of the chunk among all of the array, by which the first ones are reported.
  void add_failure(std::uint64_t number, std::string key, read_failure failure, std::uint64_t chunks = 1);
  void add_checked(std::uint64_t chunks, std::uint64_t bytes);
  void add_missing(std::uint64_t chunks);

  // Adds the counts to `array`, and the first chunks of each kind to the findings.
  void report(checked_array& array, finding_list& findings) const;

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
