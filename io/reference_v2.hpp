// SPDX-License-Identifier: BSL-1.0
//
// What references have for readers of Zarr v2, which follows from what they have for those of v3.
//
//   v2_references v2;
//   v2.node("a/zarr.json", text);        // all nodes, then all keys of chunks
//   v2.chunk("a/c/0/1");
//   v2.documents();                      // ".zgroup", "a/.zarray", ...
//
#ifndef ZARRBITS_IO_REFERENCE_V2_HPP
#define ZARRBITS_IO_REFERENCE_V2_HPP

#include "io/chunk_key_index.hpp"
#include "text/json_text.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace zarrbits::io {

class v2_references {
 public:
  void node(const std::string& key, std::string_view text);
  void chunk(const std::string& key);
  const chunk_key_index& arrays() const { return arrays_; }
  // The metadata of Zarr v2 by its keys. Arrays that Zarr v2 cannot have are left out.
  std::map<std::string, text::json> documents() const;
  // The first array that Zarr v2 cannot have, "/a/b"; empty if it can have all.
  std::string only_v3() const;

 private:
  std::map<std::string, text::json> nodes_;  // by their paths
  chunk_key_index arrays_;
  std::map<std::string, std::uint64_t> chunks_;  // how many there are of each array
};

}  // namespace zarrbits::io

#endif
