// SPDX-License-Identifier: BSL-1.0
//
// Work in a fixed order, divided into partitions: contiguous ranges of about equal work.
//
//   double preceding = 0;
//   for (const auto& x : list) is_own = partition_of(preceding, work_of(x), total, count) == index;
//
#ifndef ZARRBITS_ARRAY_WORK_PARTITION_HPP
#define ZARRBITS_ARRAY_WORK_PARTITION_HPP

#include <algorithm>
#include <cstdint>

namespace zarrbits::array {

// To open and to read or write an object costs about as much as to copy this many bytes.
constexpr std::uint64_t work_per_object = 65536;

// The partition, below `count`, of a piece of work. Adds the piece to what precedes the next one.
inline unsigned partition_of(double& preceding, double work, double total, unsigned count) {
  const double middle = preceding + work / 2;
  preceding += work;
  return std::min(count - 1, static_cast<unsigned>(middle / total * count));
}

}  // namespace zarrbits::array

#endif
