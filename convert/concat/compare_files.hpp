// SPDX-License-Identifier: BSL-1.0
//
// Whether objects of two files are equal.
//
#ifndef ZARRBITS_CONVERT_CONCAT_COMPARE_FILES_HPP
#define ZARRBITS_CONVERT_CONCAT_COMPARE_FILES_HPP

#include "hdf5/chunk_source.hpp"
#include "text/json_text.hpp"

#include <string>
#include <vector>

namespace zarrbits::conversion {

// Numbers in the machine's byte order, in which values are compared and which libhdf5 converts to any other; other types as they
// are. Throws hdf5::failure.
hdf5::handle in_native_order(hid_t type);

// The difference between two datasets (type, extent, or any value), as the end of a sentence. Empty if they are equal. Throws
// hdf5::failure, corrupt_chunk, unsupported_dataset.
std::string difference(const hdf5::chunk_source& a, const hdf5::chunk_source& b);

// The names of attributes that differ. Both objects are from convert_attributes().
std::vector<std::string> differing_attributes(const text::json& a, const text::json& b);

}  // namespace zarrbits::conversion

#endif
