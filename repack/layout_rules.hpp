// SPDX-License-Identifier: BSL-1.0
//
// The rules of layouts: what a file has to be like, and which datasets have to change for it.
//
#ifndef ZARRBITS_REPACK_LAYOUT_RULES_HPP
#define ZARRBITS_REPACK_LAYOUT_RULES_HPP

#include "repack/dataset_layout.hpp"
#include "repack/joined_layout.hpp"
#include "repack/virtual_mapping.hpp"

#include <zarrbits/repack.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zarrbits::repacking {

// CMIP7's guidance, as its archives check it: https://github.com/NCAS-CMS/cmip7_repack
constexpr std::uint64_t min_chunk_bytes = 4U << 20;

// How a dataset of the new file differs from that of the source.
struct dataset_change {
  array::extents chunk = {};                              // empty: it keeps its layout
  std::optional<std::vector<hdf5::filter>> filters = {};  // not set: it keeps its filters
  std::string reason = {};                                // a rule, or an option
  bool has_chosen_filters = false;                        // by an option
  std::optional<virtual_mapping> mapping = {};            // set: its values are in other files
  std::optional<joined_layout> joined = {};               // set: several files have its values, which are written later
  std::set<std::string> omitted_attributes = {};          // names

  explicit operator bool() const { return !chunk.empty() || filters || mapping || joined || !omitted_attributes.empty(); }
  bool keeps_chunks() const { return chunk.empty() && !filters; }
  // True if it gets no values from the source that it is created by.
  bool has_values_elsewhere() const { return mapping || joined; }
};
using dataset_changes = std::map<haddr_t, dataset_change>;

// A source, opened, as the rules see it.
struct opened_contents {
  const hdf5::source_file& file;
  const file_tree& tree;
  const file_contents& contents;
};

// With the same parameters, whatever their names.
bool are_same_filters(const std::vector<hdf5::filter>& a, const std::vector<hdf5::filter>& b);

// The rules of options.layout, and what the file has.
std::vector<layout_finding> check_rules(const opened_contents& source, const repack_options& options);

// What the rules and the options change. Throws zarrbits::error for an option that no dataset can obey.
dataset_changes plan_changes(const opened_contents& source, const repack_options& options);

}  // namespace zarrbits::repacking

#endif
