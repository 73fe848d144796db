// SPDX-License-Identifier: BSL-1.0
//
// The units of a conversion, and how they are divided into shares.
//
#ifndef ZARRBITS_CONVERT_PIPELINE_PARTITION_HPP
#define ZARRBITS_CONVERT_PIPELINE_PARTITION_HPP

#include "convert/pipeline/work_unit_result.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

struct planned_unit {
  work_unit_id id;
  chunk_range range;
};

// Stored bytes of the source's chunks.
std::uint64_t bytes_of(const std::vector<planned_unit>& units);

// The share of each unit: contiguous ranges of about equal work.
std::vector<unsigned> assign_partitions(const std::vector<planned_unit>& units, unsigned count);

// Throws zarrbits::error that says which shares are to make the missing units. `shares`: 0 if the work is not divided.
void require_all_done(const std::vector<planned_unit>& units, const std::function<bool(const work_unit_id&)>& is_done,
                      unsigned shares, const std::string& store);

// The units of one share.
std::vector<planned_unit> units_of_partition(const std::vector<planned_unit>& units, unsigned index, unsigned count);

}  // namespace zarrbits::conversion

#endif
