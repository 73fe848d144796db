// SPDX-License-Identifier: BSL-1.0
#include "convert/from_zarr/store_source.hpp"

#include "io/reference_table.hpp"
#include "text/reserved_names.hpp"
#include "text/selection.hpp"
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
  source_node node{folder, std::move(path), stored.kind == zarr::node_kind::array, std::move(stored.document),
                   std::move(stored.remarks)};
  if (const auto all = node.document.find("consolidated_metadata"); all != node.document.end()) {
    consolidated = consolidated || all->is_object();
    node.document.erase(all);
  }
  return node;
}

// One node that cannot be read leaves the others as they are.
source_node read_or_skip(const store_folder& folder, const std::string& path, bool& consolidated) {
  source_node skipped{folder, path};
  try {
    return read_one(folder, path, consolidated);
  } catch (const store_error& e) {
    if (e.code != errc::damaged_store) throw;
    skipped.unreadable = std::string("its metadata cannot be used: ") + e.what();
  } catch (const zarr::not_supported& e) {
    skipped.unreadable = std::string("this reader does not support ") + e.what();
  }
  return skipped;
}

}  // namespace

source_nodes read_nodes(const convert_options& options, const std::function<void(const std::string& path)>& at) {
  source_nodes all;
  all.nodes.push_back(
      read_one(zarr::open_source_store(options.source, options.remote, io::may_be_read({}, options.external), options.memory),
               "/", all.consolidated));
  for (std::size_t i = 0; i < all.nodes.size(); ++i) {
    if (all.nodes[i].is_array || !all.nodes[i].unreadable.empty()) continue;
    const std::string path = all.nodes[i].path;
    at(path);
    std::vector<store_folder> children = all.nodes[i].folder.nodes();
    std::sort(children.begin(), children.end(), [](const store_folder& a, const store_folder& b) { return a.path() < b.path(); });
    for (const store_folder& child : children) {
      bool ignored = false;
      if (child.last().starts_with(text::own_prefix))
        throw store_error("the node \"" + child.path() + "\" has a name that zarrbits keeps for itself");
      source_node node = read_or_skip(child, (path == "/" ? path : path + "/") + child.last(), ignored);
      if (node.path.size() > longest_path)
        throw store_error("the path \"" + node.path.substr(0, 100) + "...\" is too long: does a link lead to a folder above it?");
      node.parent = i;
      all.nodes.push_back(std::move(node));
    }
  }
  select_nodes(all, options);
  return all;
}

void select_nodes(source_nodes& all, const convert_options& options) {
  text::selection wanted(options.include, options.exclude);
  for (source_node& node : all.nodes) node.selected = wanted.wants(node.path);
  wanted.require_all_matched();
  all.nodes.front().selected = true;
  for (std::size_t i = all.nodes.size(); i-- > 1;) {
    if (all.nodes[i].selected) all.nodes[all.nodes[i].parent].selected = true;
  }
}

}  // namespace zarrbits::conversion
