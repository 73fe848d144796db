// SPDX-License-Identifier: BSL-1.0
//
// Attributes by which communities mark their files.
//
#ifndef ZARRBITS_CONVENTIONS_DETECTION_HPP
#define ZARRBITS_CONVENTIONS_DETECTION_HPP

#include "hdf5/source_file.hpp"

namespace zarrbits::conventions {

// True if the root, or (with `include_children`) a group or dataset in it, has an attribute of this name.
bool is_marked(const hdf5::source_file& file, const char* attribute, bool include_children);

}  // namespace zarrbits::conventions

#endif
