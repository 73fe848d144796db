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
#include <memory>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// The parts of an array that several stores make up: join_stores.hpp.
struct joined_array;

struct source_node {
  zarr::store_folder folder;
  std::string path;  // "/a/b"; "/" is the root
  bool is_array = false;
  text::json document = {};  // its zarr.json, without consolidated metadata
  std::vector<detail::attribute_remark> remarks = {};
  text::coded_reason unreadable = {};  // why it is not converted, and nothing below it
  bool selected = true;                // false: it was not selected, and nothing below it
  std::size_t parent = 0;
  std::shared_ptr<const joined_array> joined = {};  // null: it is the array of one store
};

struct source_nodes {
  std::vector<source_node> nodes;             // parents come before their children, which are in the order of their names
  std::vector<std::string> coordinates = {};  // variables of what `include` selects, and that it does not
  bool consolidated = false;                  // the root has the metadata of all
  std::vector<joined_source> sources = {};    // of several stores: each
  std::vector<zarr::store_folder> roots = {};
  std::string checksum = {};  // of several stores: what identifies their metadata
};

// Reads the metadata of all nodes, of several stores those of the first, which then stand for all (join_stores.hpp). Throws
// zarrbits::error, store_error and not_supported. `callback` is called with the current path.
source_nodes read_nodes(const convert_options& options, const std::function<void(const std::string& path)>& callback);
// Those of one store, `source`, without a selection.
source_nodes read_tree(const std::string& source, const convert_options& options,
                       const std::function<void(const std::string& path)>& callback);
// Selects by `include` and `exclude`, as read_nodes() does. Throws zarrbits::error.
void select_nodes(source_nodes& source, const convert_options& options);

}  // namespace zarrbits::conversion

#endif
