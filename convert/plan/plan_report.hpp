// SPDX-License-Identifier: BSL-1.0
//
// A dry run, which says what a conversion would do; and what its report and that of a conversion have in common.
//
#ifndef ZARRBITS_CONVERT_PLAN_PLAN_REPORT_HPP
#define ZARRBITS_CONVERT_PLAN_PLAN_REPORT_HPP

#include "convert/plan/dataset_plan.hpp"
#include "hdf5/external_files.hpp"

#include <zarrbits/convert.hpp>

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace zarrbits::conversion {

// Fills in everything for a prepared dataset except its path and its bytes in the source.
void describe(planned_dataset& p, const dataset_plan& dataset, const convert_options& options);

// The most bytes that the indexes of its shards take.
std::uint64_t max_shard_index_bytes(const hdf5::chunk_source& data, std::uint64_t chunks);

// The files that were read besides the source, and those that were not.
void list_other_files(const hdf5::external_file_policy& gate, std::vector<std::string>& read,
                      std::vector<convert_result::refused_file>& refused);
void add_other_files(nlohmann::ordered_json& report, const std::vector<std::string>& read,
                     const std::vector<convert_result::refused_file>& refused);

}  // namespace zarrbits::conversion

#endif
