// SPDX-License-Identifier: BSL-1.0
//
// Which array a chunk is of, by its key.
//
//   chunk_key_index arrays;
//   arrays.add("a", node);           // from its zarr.json
//   arrays.find_array("a/c/0/1")->first;  // "a"; the key is the chunk's in Zarr v3, "c/0/1" below the array
//   arrays.to_v2_key("a/c/0/1");     // "a/0.1", the key in Zarr v2
//   arrays.to_v3_key("a/0.1");       // and back; "a/0/1", if that is the form of the array's keys in Zarr v2
//
#ifndef ZARRBITS_IO_CHUNK_KEY_INDEX_HPP
#define ZARRBITS_IO_CHUNK_KEY_INDEX_HPP

#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::io {

class chunk_key_index {
 public:
  using counts = std::vector<std::uint64_t>;  // of chunks along each dimension
  using entry = std::pair<const std::string, counts>;

  // False if the node does not say what its chunks are. "" is the root.
  bool add(const std::string& array, const text::json& node);
  std::size_t size() const { return arrays_.size(); }
  // Empty if there is no such array.
  counts counts_of(const std::string& array) const {
    const auto it = arrays_.find(array);
    return it == arrays_.end() ? counts() : it->second;
  }
  // Null if no array has such a chunk. A group may be called "c", too.
  const entry* find_array(const std::string& key) const;
  // Unchanged if no array has such a chunk.
  std::string to_v2_key(const std::string& key) const;
  std::string to_v3_key(const std::string& key) const;

 private:
  std::map<std::string, counts> arrays_;
  std::set<std::string> with_slashes_;   // those whose keys of Zarr v2 have slashes
  mutable const entry* last_ = nullptr;  // most keys are of the same array as the one before
};

// The path of a node by the key of its zarr.json: "a/b" of "a/b/zarr.json".
std::string path_of_node(const std::string& key);

}  // namespace zarrbits::io

#endif
