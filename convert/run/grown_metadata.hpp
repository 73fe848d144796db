// SPDX-License-Identifier: BSL-1.0
//
// The metadata of a growing store: the existing one, with new lengths, and more files.
//
#ifndef ZARRBITS_CONVERT_RUN_GROWN_METADATA_HPP
#define ZARRBITS_CONVERT_RUN_GROWN_METADATA_HPP

#include "append/grown_store.hpp"
#include "convert/run/job.hpp"

#include <zarrbits/convert.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace zarrbits::conversion {

struct grown_metadata {
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
grown_metadata write_grown_metadata(job& all, const append::grown_store& store, bool consolidate);

}  // namespace zarrbits::conversion

#endif
