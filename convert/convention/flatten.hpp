// SPDX-License-Identifier: BSL-1.0
//
// Compounds with strings, which communities write to Zarr as one array of structs.
//
#ifndef ZARRBITS_CONVERT_CONVENTION_FLATTEN_HPP
#define ZARRBITS_CONVERT_CONVENTION_FLATTEN_HPP

#include "convert/hdf5/source_file.hpp"

namespace zarrbits::conversion {

// Of each dataset whose type can_be_flat(): reads all values, and notes how long its strings are; then it becomes one array.
// Where it is another, cannot be read, or is larger than 64 MiB, nothing is noted, and it becomes a group of arrays.
void flatten_compounds(source_file& file);

}  // namespace zarrbits::conversion

#endif
