// SPDX-License-Identifier: BSL-1.0
//
// The metadata of a store that grows: what is there, with other lengths, and more files.
//
#ifndef ZARRBITS_CONVERT_RUN_GROWN_METADATA_HPP
#define ZARRBITS_CONVERT_RUN_GROWN_METADATA_HPP

#include "convert/append/grown_store.hpp"
#include "convert/run/job.hpp"

#include <zarrbits/convert.hpp>

#include <string>
#include <vector>

namespace zarrbits::conversion {

struct grown_metadata {
  std::vector<converted_object> objects;  // the account of them
  // In the order in which a reader may see them: an array whose coordinate is shorter than itself can be read, and all that it
  // has is there. The root is the last one: who reads consolidated metadata sees all at once.
  std::vector<std::string> keys;
  std::vector<std::string> absent;  // chunks of which nothing may be in the store, unless it was made
};

// When all chunks are made. `consolidate`: also where the root has no consolidated metadata. Throws convert_error where something
// could not be converted: a store grows as a whole.
grown_metadata write_grown_metadata(job& all, const grown_store& store, bool consolidate);

}  // namespace zarrbits::conversion

#endif
