// SPDX-License-Identifier: BSL-1.0
//
// Decides what to do with links, which Zarr does not have, and warns before anything is written.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_LINK_POLICY_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_LINK_POLICY_HPP

#include "conventions/convention_rules.hpp"
#include "hdf5/source_file.hpp"

#include <zarrbits/convert.hpp>

namespace zarrbits::conversion {

// Call after walk(), and before the convention arranges the objects. `rules`: those of the file, or null.
void follow_links(hdf5::source_file& source, const convert_options& options, const conventions::convention_rules* rules,
                  bool tells_case_apart);

// Counts the selected links.
link_counts count_links(const hdf5::source_file& source);

// Throws zarrbits::error if there are links and they are refused.
void refuse_links(const hdf5::source_file& source, const convert_options& options);

// Warns of links into other files that stay notes, and of links that cannot be followed.
void warn_of_links(const hdf5::source_file& source, const convert_options& options);

// Adds the objects that are lost with links, as skipped datasets.
void add_lost_links(const hdf5::source_file& source, convert_plan& plan);

}  // namespace zarrbits::conversion

#endif
