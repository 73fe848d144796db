// SPDX-License-Identifier: BSL-1.0
//
// NeXus. Its readers find data through links of groups, which Zarr does not have; they read everything else in HDF5's own terms.
//
#ifndef ZARRBITS_CONVENTIONS_NEXUS_HPP
#define ZARRBITS_CONVENTIONS_NEXUS_HPP

#include "conventions/convention_rules.hpp"
#include "conventions/detection.hpp"

namespace zarrbits::conventions {

inline bool is_nexus(const hdf5::source_file& file) { return is_marked(file, "NX_class", true); }

inline constexpr convention_rules nexus_rules = {
    .kind = zarrbits::convention::nexus, .recognise = is_nexus, .links_are_objects = true};

}  // namespace zarrbits::conventions

#endif
