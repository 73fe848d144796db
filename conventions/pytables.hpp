// SPDX-License-Identifier: BSL-1.0
//
// PyTables. Its files have links as nodes, and Zarr has no links; its booleans are bit fields of one byte. Everything else is in
// HDF5's own terms.
//
#ifndef ZARRBITS_CONVENTIONS_PYTABLES_HPP
#define ZARRBITS_CONVENTIONS_PYTABLES_HPP

#include "conventions/convention_rules.hpp"
#include "conventions/detection.hpp"

namespace zarrbits::conventions {

inline bool is_pytables(const hdf5::source_file& file) { return is_marked(file, "PYTABLES_FORMAT_VERSION", false); }

void override_pytables_schema(hdf5::source_file& file);

inline constexpr convention_rules pytables_rules = {.kind = zarrbits::convention::pytables,
                                                    .recognise = is_pytables,
                                                    .override_schema = override_pytables_schema,
                                                    .links_are_objects = true};

}  // namespace zarrbits::conventions

#endif
