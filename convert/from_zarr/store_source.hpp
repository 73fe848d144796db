// SPDX-License-Identifier: BSL-1.0
//
// The nodes of a Zarr store that is converted.
//
#ifndef ZARRBITS_CONVERT_FROM_ZARR_STORE_SOURCE_HPP
#define ZARRBITS_CONVERT_FROM_ZARR_STORE_SOURCE_HPP

#include "text/json_text.hpp"
#include "zarr/read/store_reader.hpp"

#include <zarrbits/convert.hpp>

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

struct source_node {
  zarr::store_folder folder;
  std::string path;  // "/a/b"; "/" is the root
  bool is_array = false;
  text::json document = {};  // its zarr.json, without consolidated metadata
  std::vector<detail::attribute_remark> remarks = {};
  std::string unreadable = {};  // why it is not converted, and nothing below it
  bool selected = true;         // false: it was not selected, and nothing below it
  std::size_t parent = 0;
};

struct source_nodes {
  std::vector<source_node> nodes;             // parents come before their children, which are in the order of their names
  std::vector<std::string> coordinates = {};  // variables of what `include` selects, and that it does not
  bool consolidated = false;                  // the root has the metadata of all
};

// Reads the metadata of all nodes. Throws zarrbits::error, store_error and not_supported. `callback` is called with the
// current path.
source_nodes read_nodes(const convert_options& options, const std::function<void(const std::string& path)>& callback);
// Selects by `include` and `exclude`, as read_nodes() does. Throws zarrbits::error.
void select_nodes(source_nodes& source, const convert_options& options);

}  // namespace zarrbits::conversion

#endif
