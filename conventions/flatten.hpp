// SPDX-License-Identifier: BSL-1.0
//
// Compounds with strings, which communities write to Zarr as one array of structs.
//
#ifndef ZARRBITS_CONVENTIONS_FLATTEN_HPP
#define ZARRBITS_CONVENTIONS_FLATTEN_HPP

#include "hdf5/source_file.hpp"

namespace zarrbits::conventions {

// For each dataset whose type can_be_flat(): reads all values, and records the lengths of its strings, so that it becomes one
// array. A dataset that is of another type, unreadable, or larger than 64 MiB becomes a group of arrays.
void flatten_compounds(hdf5::source_file& file);

}  // namespace zarrbits::conventions

#endif
