// SPDX-License-Identifier: BSL-1.0
//
// The share of the chunks that one of several processes checks.
//
//   chunk_partition own(options.partition, arrays);
//   for (auto& array : arrays) array.select(own);   // in the order of `arrays`
//
#ifndef ZARRBITS_CHECK_CHUNK_PARTITION_HPP
#define ZARRBITS_CHECK_CHUNK_PARTITION_HPP

#include "array/work_partition.hpp"
#include "check/chunk_results.hpp"

#include <zarrbits/check.hpp>

#include <vector>

namespace zarrbits::checking {

// True if this process reports what it finds about metadata and keys: all processes read these, to know the chunks.
inline bool reports_metadata(const integrity_options& options) { return !options.partition || options.partition->index == 0; }

class chunk_partition {
 public:
  template <class Arrays>
  chunk_partition(const partition& share, const Arrays& arrays) : share_(share) {
    for (const auto& array : arrays)
      total_ += static_cast<double>(array.bytes()) + static_cast<double>(array.listed()) * array::work_per_object;
  }

  // Removes those that other processes read. Call it for all lists, in order.
  void select(std::vector<listed_chunk>& list) {
    std::erase_if(list, [&](const listed_chunk& chunk) {
      const double work = static_cast<double>(chunk.bytes) + static_cast<double>(array::work_per_object);
      return array::partition_of(preceding_, work, total_, share_.count) != share_.index;
    });
  }

 private:
  const partition share_;
  double preceding_ = 0, total_ = 0;
};

}  // namespace zarrbits::checking

#endif
