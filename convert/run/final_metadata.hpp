// SPDX-License-Identifier: BSL-1.0
//
// The metadata of all objects, from the leaves to the root, after the chunks are written.
//
#ifndef ZARRBITS_CONVERT_RUN_FINAL_METADATA_HPP
#define ZARRBITS_CONVERT_RUN_FINAL_METADATA_HPP

#include "convert/run/hdf5_conversion.hpp"

#include <zarrbits/convert.hpp>

#include <vector>

namespace zarrbits::conversion {

// Writes the metadata, and returns the report's entries of all objects.
std::vector<converted_object> write_metadata(hdf5_conversion& converter);

}  // namespace zarrbits::conversion

#endif
