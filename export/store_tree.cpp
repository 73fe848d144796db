// SPDX-License-Identifier: BSL-1.0
#include "export/store_tree.hpp"

#include "export/grouped_dataset.hpp"
#include "export/hdmf_notes.hpp"
#include "export/path_references.hpp"
#include "text/shown.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <algorithm>
#include <utility>

namespace zarrbits::exporting {

using verification::store_folder;

namespace {

constexpr std::size_t deepest_group = 1000;  // groups; libhdf5 recurses when it closes them

void describe_array(tree_node& n, const store_node& node) {
  n.kind = tree_node::kind_type::array;
  n.dimensions = node.dimensions;
  const auto shape = node.document.find("shape");
  if (shape == node.document.end() || !shape->is_array()) return;
  for (const json& e : *shape) n.shape.push_back(e.is_number_unsigned() ? e.get<std::uint64_t>() : 0);
}

// Leaves out what is not wanted. Groups above what is wanted stay.
void select(store_tree& tree, const std::vector<std::string>& include, const std::vector<std::string>& exclude) {
  conversion::selection& wanted = tree.wanted = conversion::selection(include, exclude);
  if (wanted.everything()) return;
  std::vector<bool> keep(tree.nodes.size());
  for (std::size_t i = 0; i < keep.size(); ++i) keep[i] = wanted.wants(conversion::shown(tree.nodes[i].path));
  std::erase_if(tree.unnamed, [&](const left_out& each) { return !wanted.wants(each.path); });
  wanted.require_all_matched();
  for (std::size_t i = keep.size(); i-- > 1;) {
    if (keep[i]) keep[tree.nodes[i].parent] = true;
  }
  keep[0] = true;
  std::vector<tree_node> nodes;
  std::vector<std::size_t> place(keep.size());
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) continue;
    place[i] = nodes.size();
    nodes.push_back(std::move(tree.nodes[i]));
    nodes.back().parent = place[nodes.back().parent];
  }
  tree.nodes = std::move(nodes);
}

std::size_t depth_of(const std::string& path) { return static_cast<std::size_t>(std::count(path.begin(), path.end(), '/')); }

// Why a node cannot be read, which leaves the others as they are; "": it can be.
std::string reason_not_to_read(const store_folder& folder) {
  try {
    (void)read_store_node(folder);
    return "";
  } catch (const verification::store_error& e) {
    if (e.code != errc::damaged_store) throw;
    return std::string("its metadata cannot be used: ") + e.what();
  } catch (const verification::not_supported& e) {
    return e.what();
  }
}

}  // namespace

bool is_phony(const std::string& dimension) {
  constexpr std::string_view prefix = "phony_dim_";
  return dimension.starts_with(prefix) && dimension.size() > prefix.size() &&
         dimension.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

std::string path_below(const std::string& group, const std::string& name) {
  return group + (group.ends_with('/') ? "" : "/") + name;
}

std::string last_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

store_tree read_tree(const store_folder& root, const store_folder& whole, const std::vector<std::string>& include,
                     const std::vector<std::string>& exclude, const std::function<void(const std::string& path)>& at) {
  store_tree tree;
  const auto note_of_root = [&](const store_node& node) {
    if (node.note("convention").is_string()) tree.convention = node.note("convention").get<std::string>();
    const json& selection = node.note("selection");
    if (selection.is_object() && selection.value("object", json()).is_string())
      tree.top = conversion::unshown(selection["object"].get<std::string>());
  };
  const store_node top = read_store_node(root);
  note_of_root(read_store_node(whole));
  if (!root.path().empty()) tree.top = path_below(tree.top, root.path());
  const auto look_at = [&](const store_node& node) {
    tree.has_notes = tree.has_notes || !node.notes.empty();
    const json& values = node.note("attribute_values");
    tree.most_attributes = std::max(tree.most_attributes, node.attributes.size() + (values.is_object() ? values.size() : 0));
    // a program that changes the root's attributes drops its notes
    const bool netcdf = values.is_object() && (values.contains("_Netcdf4Dimid") || values.contains("_Netcdf4Coordinates"));
    if (netcdf && tree.convention.empty()) tree.convention = "netcdf";
  };
  look_at(top);
  if (tree.convention.empty() && is_nwb_root(top)) tree.convention = "nwb";
  if (top.is_array || is_grouped_dataset(top)) {  // HDF5's root is a group
    std::string name = last_of(tree.top);
    if (!is_link_name(name)) name = "data";
    tree.nodes.push_back({root, tree_node::kind_type::group, "/", 0});
    tree_node n{root, tree_node::kind_type::grouped, "/" + name, 0};
    if (top.is_array) describe_array(n, top);
    tree.nodes.push_back(std::move(n));
    return tree;
  }
  tree.nodes.push_back({root, tree_node::kind_type::group, "/", 0});
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    if (tree.nodes[i].kind != tree_node::kind_type::group) continue;
    const std::string path = tree.nodes[i].path;
    at(path);
    const store_folder folder = tree.nodes[i].folder;
    const store_node group = read_store_node(folder);
    const json& links = group.note("links");
    std::vector<store_folder> children = folder.nodes();
    std::sort(children.begin(), children.end(), [](const store_folder& a, const store_folder& b) { return a.path() < b.path(); });
    for (const store_folder& child : children) {
      const std::string name = name_in_file(group, child.last());
      if (links.is_object() && links.contains(conversion::shown(name))) continue;
      if (!is_link_name(name)) {
        tree.unnamed.push_back({path_below(path, conversion::shown(name)), "HDF5 cannot have this name"});
        continue;
      }
      const std::string why = reason_not_to_read(child);
      if (!why.empty()) {
        tree.unnamed.push_back({path_below(path, conversion::shown(name)), why});
        continue;
      }
      const store_node node = read_store_node(child);
      look_at(node);
      tree_node n{child, tree_node::kind_type::group, path_below(path, name), i};
      if (depth_of(n.path) > deepest_group) {
        tree.unnamed.push_back({n.path, "groups nested more than " + std::to_string(deepest_group) + " deep"});
        continue;
      }
      if (node.is_array) describe_array(n, node);
      else if (is_grouped_dataset(node)) n.kind = tree_node::kind_type::grouped;
      else if (!node.note("datatype").is_null()) n.kind = tree_node::kind_type::named_type;
      tree.nodes.push_back(std::move(n));
    }
  }
  select(tree, include, exclude);
  return tree;
}

}  // namespace zarrbits::exporting
