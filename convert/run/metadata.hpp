// SPDX-License-Identifier: BSL-1.0
//
// The metadata of all objects, from the leaves to the root, after the chunks are written.
//
#ifndef ZARRBITS_CONVERT_RUN_METADATA_HPP
#define ZARRBITS_CONVERT_RUN_METADATA_HPP

#include "convert/run/job.hpp"

#include <zarrbits/convert.hpp>

#include <vector>

namespace zarrbits::conversion {

// Writes the metadata, and returns the report's entries of all objects.
std::vector<converted_object> write_metadata(job& all);

}  // namespace zarrbits::conversion

#endif
