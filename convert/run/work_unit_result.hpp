// SPDX-License-Identifier: BSL-1.0
//
// Units: the pieces in which a conversion is assigned, journalled and resumed; and the result of one. A unit is a range of the
// chunks of one dataset in C order, or of its shards (or all of them), and depends only on the source and the options.
//
#ifndef ZARRBITS_CONVERT_RUN_WORK_UNIT_RESULT_HPP
#define ZARRBITS_CONVERT_RUN_WORK_UNIT_RESULT_HPP

#include "convert/plan/array_plan.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

struct work_unit_id {
  std::size_t dataset = 0;  // index among the source's objects
  std::uint64_t number = 0;

  friend auto operator<=>(const work_unit_id&, const work_unit_id&) = default;
};

// Results of the chunks of one array, or of some of them. Sums do not depend on the order in which the chunks were made.
struct array_result {
  assumptions assumed;  // assumptions under which the chunks were made
  chunk_counts counts;
  outcome worst = outcome::raw;
  std::uint64_t store_bytes = 0;
  bool rounded = false;                                           // Zarr's type changes some values
  bool dangling = false;                                          // a reference points to nothing
  std::string unpacked;                                           // why packed chunks were not kept: a chunk and its value
  std::map<std::vector<std::uint64_t>, std::string> lost_chunks;  // unreadable chunks, with the reason

  void add(const array_result& other);
};

// An array that was made while its values were read: its form was not known before.
struct derived_array {
  std::string store_path;
  std::optional<metadata::array_metadata> meta;  // without dimension names; empty: a group
};

struct work_unit_result {
  std::vector<array_result> arrays;  // one for each part of the dataset
  std::vector<derived_array> derived_arrays;
  std::string skipped;  // why the dataset cannot be converted; the rest is then meaningless

  void add(work_unit_result&& other);
};

// Merges all units of a dataset, and removes them.
work_unit_result take_units(std::map<work_unit_id, work_unit_result>& results, std::size_t dataset);

// One line of the journal.
std::string journal_line(const work_unit_id& id, const work_unit_result& result);
// Empty if the line is invalid, for example truncated.
std::optional<std::pair<work_unit_id, work_unit_result>> parse_journal_line(std::string_view line);

}  // namespace zarrbits::conversion

#endif
