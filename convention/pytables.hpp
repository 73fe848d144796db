// SPDX-License-Identifier: BSL-1.0
//
// PyTables. Its files have links as nodes, and Zarr has no links; its booleans are bit fields of one byte. Everything else is in
// HDF5's own terms.
//
#ifndef ZARRBITS_CONVERT_CONVENTION_PYTABLES_HPP
#define ZARRBITS_CONVERT_CONVENTION_PYTABLES_HPP

#include "convention/convention_rules.hpp"
#include "convention/marks.hpp"

namespace zarrbits::conventions {

inline bool is_pytables(const hdf5::source_file& file) { return is_marked(file, "PYTABLES_FORMAT_VERSION", false); }

void arrange_pytables(hdf5::source_file& file);

inline constexpr convention_rules pytables_rules = {
    .which = zarrbits::convention::pytables, .recognise = is_pytables, .arrange = arrange_pytables, .links_are_objects = true};

}  // namespace zarrbits::conventions

#endif
