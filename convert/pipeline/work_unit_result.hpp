// SPDX-License-Identifier: BSL-1.0
//
// Units: the pieces in which a conversion is assigned, journalled and resumed; and the result of one. A unit is a range of the
// chunks of one dataset in C order, or of its shards (or all of them), and depends only on the source and the options.
//
#ifndef ZARRBITS_CONVERT_PIPELINE_WORK_UNIT_RESULT_HPP
#define ZARRBITS_CONVERT_PIPELINE_WORK_UNIT_RESULT_HPP

#include "metadata/array_metadata.hpp"
#include "text/coded_reason.hpp"

#include <zarrbits/convert.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// A range of an array's shards or, without shards, of its chunks, in C order; or of other items that are made one by one.
struct chunk_range {
  std::uint64_t first = 0, count = 0;
  std::uint64_t bytes = 0;  // stored bytes in the source, approximate
};

struct work_unit_id {
  std::size_t dataset = 0;  // index among the source's objects
  std::uint64_t number = 0;

  friend auto operator<=>(const work_unit_id&, const work_unit_id&) = default;
};

// Assumptions about the data, which hold until a chunk proves one wrong. Then the array is planned and rewritten without it: all
// its chunks are overwritten, under the same keys.
struct assumptions {
  bool text_is_utf8 = true;
  bool bools_are_0_or_1 = true;
  bool raw_packing_fits = true;  // chunks of our packbits filter are chunks of the codec
  bool bits_suffice = true;      // every value fits in convert_encoding::bits

  friend bool operator==(const assumptions&, const assumptions&) = default;
};

// Thrown if the data breaks an assumption; names the assumption to drop, and where that has to be said, the chunk and the value.
struct wrong_assumption {
  bool assumptions::*assumption;
  std::string reason = {};
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
  text::coded_reason skipped;  // why the dataset cannot be converted; the rest is then meaningless

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
