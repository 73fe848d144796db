// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_CONVENTIONS_REFERENCES_HPP
#define ZARRBITS_CONVENTIONS_REFERENCES_HPP

#include "hdf5/source_file.hpp"

#include <string>

namespace zarrbits::conventions {

// The target of an attribute that holds one object reference; null if it holds something else, or points to nothing.
const hdf5::source_object* dereference(const hdf5::source_file& file, hid_t object, const std::string& attribute);

}  // namespace zarrbits::conventions

#endif
