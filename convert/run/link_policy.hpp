// SPDX-License-Identifier: BSL-1.0
//
// What becomes of links, which Zarr has none of, and what is said of that before anything is written.
//
#ifndef ZARRBITS_CONVERT_RUN_LINK_POLICY_HPP
#define ZARRBITS_CONVERT_RUN_LINK_POLICY_HPP

#include "convert/convention/convention_rules.hpp"
#include "convert/hdf5/source_file.hpp"

#include <zarrbits/convert.hpp>

namespace zarrbits::conversion {

// After walk(), and before the convention arranges what there is. `rules`: those of the file, or null.
void follow_links(source_file& source, const convert_options& options, const convention_rules* rules, bool tells_case_apart);

// Of the links that were selected.
link_counts count_links(const source_file& source);

// Throws convert_error where there are some and there must not be.
void refuse_links(const source_file& source, const convert_options& options);

// Of links into other files that stay notes, and of those that cannot be followed.
void warn_of_links(const source_file& source, const convert_options& options);

// What is lost with them, as datasets that are skipped.
void add_lost_links(const source_file& source, convert_plan& plan);

}  // namespace zarrbits::conversion

#endif
