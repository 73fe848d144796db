// SPDX-License-Identifier: BSL-1.0
//
// The metadata of a growing store: the existing one, with new lengths, and more files.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_APPENDED_METADATA_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_APPENDED_METADATA_HPP

#include "append/append_target.hpp"
#include "convert/from_hdf5/hdf5_source.hpp"

#include <zarrbits/convert.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace zarrbits::conversion {

struct appended_metadata {
  std::vector<converted_object> objects;  // their entries for the report
  // In a safe order for readers: an array whose coordinate is still shorter can be read, with all its values. The root is last: a
  // reader of consolidated metadata sees all changes at once.
  std::vector<std::string> keys;
  std::map<std::string, std::string> checksums;  // checksum_of_text() of each key
  std::vector<std::string> absent;               // chunks that the store must not have, unless this run made them
  std::uint64_t chunk_bytes = 0;                 // of all new chunks
};

// Call when all chunks are made. `consolidate`: consolidate even if the root has no consolidated metadata yet. Throws
// zarrbits::error if an object could not be converted: a store grows as a whole.
appended_metadata write_appended_metadata(hdf5_source& source, const append::append_target& store, bool consolidate);

}  // namespace zarrbits::conversion

#endif
