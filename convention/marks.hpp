// SPDX-License-Identifier: BSL-1.0
//
// Attributes by which communities mark their files.
//
#ifndef ZARRBITS_CONVERT_CONVENTION_MARKS_HPP
#define ZARRBITS_CONVERT_CONVENTION_MARKS_HPP

#include "hdf5/source_file.hpp"

namespace zarrbits::conventions {

// True if the root, or (with `below`) a group or dataset in it, has an attribute of this name.
bool is_marked(const hdf5::source_file& file, const char* attribute, bool below);

}  // namespace zarrbits::conventions

#endif
