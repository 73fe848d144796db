// SPDX-License-Identifier: BSL-1.0
//
// A zarr.json with its members in order: attributes of a file have one.
//
#ifndef ZARRBITS_EXPORT_STORE_NODE_HPP
#define ZARRBITS_EXPORT_STORE_NODE_HPP

#include "text/json_text.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace zarrbits::exporting {

struct store_node {
  bool is_array = false;
  text::json document;                  // without attributes
  text::json attributes;                // an object, without the notes
  std::vector<std::string> dimensions;  // the names of an array's; "" where it has none. Empty if it names none
  text::json notes;                     // what `convert` noted under "zarrbits"; an object
  std::vector<detail::attribute_remark> remarks;

  const text::json& note(const char* key) const;  // null if absent
};

store_node store_node_of(zarr::stored_node stored);
// Throws zarr::store_error.
store_node read_store_node(const zarr::store_folder& folder);

}  // namespace zarrbits::exporting

#endif
