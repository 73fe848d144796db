// SPDX-License-Identifier: BSL-1.0
//
// The metadata of all objects, from the leaves to the root, after the chunks are written.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_FINAL_METADATA_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_FINAL_METADATA_HPP

#include "convert/from_hdf5/hdf5_source.hpp"

#include <zarrbits/convert.hpp>

#include <vector>

namespace zarrbits::conversion {

// Writes the metadata, and returns the report's entries of all objects.
std::vector<converted_object> write_metadata(hdf5_source& source);

}  // namespace zarrbits::conversion

#endif
