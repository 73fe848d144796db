// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/store_source.hpp"

#include "convert/from_zarr/join_stores.hpp"
#include "io/reference_table.hpp"
#include "metadata/node.hpp"
#include "text/coordinates.hpp"
#include "text/reserved_names.hpp"
#include "text/selection.hpp"
#include "zarr/read/unreadable_node.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <algorithm>
#include <utility>

namespace zarrbits::conversion {

namespace {

using zarr::store_error;
using zarr::store_folder;

constexpr std::size_t longest_path = 4000;  // a link that leads above itself would never end

source_node read_one(const store_folder& folder, std::string path, bool& consolidated) {
  zarr::stored_node stored = zarr::read_stored_node(folder);
  source_node node{folder, std::move(path), stored.kind == metadata::node_kind::array, std::move(stored.document),
                   std::move(stored.remarks)};
  consolidated = metadata::remove_consolidated(node.document) || consolidated;
  return node;
}

// One node that cannot be read leaves the others as they are.
source_node read_or_skip(const store_folder& folder, const std::string& path, bool& consolidated) {
  source_node skipped{folder, path};
  try {
    return read_one(folder, path, consolidated);
  } catch (const store_error& e) {
    if (e.code != errc::damaged_store) throw;
    skipped.unreadable = zarr::unusable_metadata(e.reason, e);
  } catch (const zarr::not_supported& e) {
    skipped.unreadable = zarr::unsupported_node(e);
  }
  return skipped;
}

// How much of files on servers will be read.
zarr::access_pattern access_pattern_for(const convert_options& options) {
  const bool reads_all = !options.target.references && options.selection.include.empty() && options.selection.exclude.empty() &&
                         split_source(options.source.name).object.empty();
  return reads_all ? zarr::access_pattern::full : zarr::access_pattern::partial;
}

}  // namespace

source_nodes read_tree(const std::string& source, const convert_options& options,
                       const std::function<void(const std::string& path)>& callback) {
  source_nodes result;
  result.nodes.push_back(read_one(zarr::open_source_store(source, options.remote, io::allowed_paths({}, options.source.external),
                                                          options.execution.memory, access_pattern_for(options)),
                                  "/", result.consolidated));
  for (std::size_t i = 0; i < result.nodes.size(); ++i) {
    if (result.nodes[i].is_array || !result.nodes[i].unreadable.empty()) continue;
    const std::string path = result.nodes[i].path;
    callback(path);
    std::vector<store_folder> children = result.nodes[i].folder.nodes();
    std::sort(children.begin(), children.end(), [](const store_folder& a, const store_folder& b) { return a.path() < b.path(); });
    for (const store_folder& child : children) {
      bool ignored = false;
      if (child.leaf_name().starts_with(text::internal_prefix))
        throw store_error("the node \"" + child.path() + "\" has a name that zarrbits keeps for itself");
      source_node node = read_or_skip(child, (path == "/" ? path : path + "/") + child.leaf_name(), ignored);
      if (node.path.size() > longest_path)
        throw store_error("the path \"" + node.path.substr(0, 100) + "...\" is too long: does a link lead to a folder above it?");
      node.parent = i;
      result.nodes.push_back(std::move(node));
    }
  }
  return result;
}

namespace {

std::vector<std::string> find_coordinates(const source_nodes& source, const convert_options& options) {
  if (options.selection.include.empty()) return {};
  text::selection node_filter(options.selection.include, options.selection.exclude);
  std::map<std::string, bool> is_selected;
  std::map<std::string, const source_node*> nodes;
  for (const source_node& node : source.nodes) {
    if (!node.is_array || node_filter.excludes(node.path)) continue;
    is_selected[node.path] = node_filter.matches(node.path);
    nodes[node.path] = &node;
  }
  return text::unselected_coordinates(
      is_selected, [&](const std::string& path) { return metadata::referenced_variables(nodes.at(path)->document); });
}

}  // namespace

void select_nodes(source_nodes& source, const convert_options& options) {
  source.coordinates = find_coordinates(source, options);
  text::selection node_filter(
      text::include_patterns(options.selection.include, options.selection.with_coordinates, source.coordinates),
      options.selection.exclude);
  for (source_node& node : source.nodes) node.selected = node_filter.matches(node.path);
  node_filter.require_all_matched();
  source.nodes.front().selected = true;
  for (std::size_t i = source.nodes.size(); i-- > 1;) {
    if (source.nodes[i].selected) source.nodes[source.nodes[i].parent].selected = true;
  }
}

source_nodes read_nodes(const convert_options& options, const std::function<void(const std::string& path)>& callback) {
  source_nodes result = read_tree(options.source.name, options, callback);
  select_nodes(result, options);
  if (options.source.concat) join_stores(result, options, callback);
  else result.roots = {result.nodes.front().folder};
  return result;
}

}  // namespace zarrbits::conversion
