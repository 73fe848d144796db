// SPDX-License-Identifier: BSL-1.0
#include "export/store_tree.hpp"

#include "codecs/codec_chain.hpp"
#include "convert/from_zarr/join_stores.hpp"
#include "export/grouped_dataset.hpp"
#include "export/hdmf_notes.hpp"
#include "export/link_order.hpp"
#include "export/path_references.hpp"
#include "metadata/node.hpp"
#include "text/name_escaping.hpp"
#include "text/nfc.hpp"
#include "zarr/read/unreadable_node.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

namespace zarrbits::exporting {

using zarr::store_folder;

namespace {

constexpr std::size_t max_group_depth = 1000;  // groups; libhdf5 recurses when it closes them

void describe_array(tree_node& n, const store_node& node) {
  n.kind = tree_node::kind_type::array;
  n.dimensions = node.dimensions;
  const text::json& shape = metadata::shape_of(node.document);
  if (!shape.is_array()) return;
  for (const text::json& e : shape) n.shape.push_back(e.is_number_unsigned() ? e.get<std::uint64_t>() : 0);
}

struct noted_link {
  std::size_t group;
  std::string path, target;            // "": it leads to nothing in the store
  std::optional<tree_node> copy = {};  // that the store has of the target
};

std::string target_of(const std::string& group, const text::json& note) {
  if (!note.is_object() || !note.value("target", text::json()).is_string() || note.contains("file")) return "";
  const std::string target = text::unescape_name(note["target"].get<std::string>());
  return target.starts_with('/') ? target : path_below(group, target);
}

// A link whose target is not in the file becomes the target itself.
void replace_links(store_tree& tree, const std::vector<noted_link>& links) {
  std::map<std::string, std::size_t> arrays;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    if (tree.nodes[i].kind != tree_node::kind_type::group) arrays[tree.nodes[i].path] = i;
  }
  for (const noted_link& link : links) {
    if (link.target.empty() || !tree.selection.matches(text::escape_name(link.path))) continue;
    const auto target = arrays.find(link.target);
    const bool is_there = target != arrays.end();
    if (is_there ? tree.selection.matches(text::escape_name(link.target)) : !link.copy) continue;
    tree_node n = is_there ? tree.nodes[target->second] : *link.copy;
    n.path = link.path;
    n.parent = link.group;
    tree.nodes.push_back(std::move(n));
  }
}

// Leaves out unselected nodes. Groups above selected nodes stay.
void select(store_tree& tree, const std::vector<noted_link>& links) {
  text::selection& selection = tree.selection;
  replace_links(tree, links);
  const auto is_omitted = [](const tree_node& n) { return n.joined && !n.joined->selected; };  // it differs between the stores
  if (selection.matches_all() && std::none_of(tree.nodes.begin(), tree.nodes.end(), is_omitted)) return;
  std::set<std::size_t> with_links;
  for (const noted_link& link : links) {
    if (selection.matches(text::escape_name(link.path))) with_links.insert(link.group);
  }
  std::vector<bool> keep(tree.nodes.size());
  for (std::size_t i = 0; i < keep.size(); ++i) {
    keep[i] = (selection.matches(text::escape_name(tree.nodes[i].path)) && !is_omitted(tree.nodes[i])) || with_links.contains(i);
  }
  std::erase_if(tree.unnamed, [&](const left_out& omitted) { return !selection.matches(omitted.path); });
  selection.require_all_matched();
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

// The children in the order that the group notes. True if it notes one.
bool put_in_order(std::vector<store_folder>& children, const store_node& group) {
  const link_order order(group);
  if (order.empty()) return false;
  std::vector<std::pair<std::size_t, std::size_t>> ranks;
  for (const store_folder& child : children) ranks.emplace_back(order.rank(name_in_file(group, child.leaf_name())), ranks.size());
  std::sort(ranks.begin(), ranks.end());
  std::vector<store_folder> sorted;
  for (const auto& [rank, index] : ranks) sorted.push_back(children[index]);
  children = std::move(sorted);
  return true;
}

// Empty: it can be read.
text::coded_reason reason_not_to_read(const store_folder& folder) {
  return zarr::reason_unreadable([&] { (void)read_store_node(folder); });
}

}  // namespace

std::string path_below(const std::string& group, const std::string& name) {
  return group + (group.ends_with('/') ? "" : "/") + name;
}

bool leads_to_a_file(const text::json& link, const std::string& target) {
  namespace fs = std::filesystem;
  if (!link.is_object() || link.value("kind", text::json()) != "external" || !link.value("file", text::json()).is_string())
    return true;
  const fs::path file = text::unescape_name(link["file"].get<std::string>()), folder = fs::absolute(target).parent_path();
  std::error_code e;
  return fs::exists(folder / file, e) || fs::exists(folder / file.filename(), e);
}

store_node read_node(const tree_node& n) {
  if (!n.joined) return read_store_node(n.folder);
  return store_node_of({metadata::node_kind::array, n.joined->document, n.joined->remarks});
}

conversion::source_array open_array(const tree_node& n) {
  return n.joined ? conversion::open_source_array(*n.joined)
                  : conversion::source_array(zarr::zarr_array(n.folder, codecs::make_decoder));
}

std::string last_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void normalize_names(store_tree& tree) {
  for (std::size_t i = 1; i < tree.nodes.size(); ++i) {  // parents come first
    tree_node& n = tree.nodes[i];
    n.path = path_below(tree.nodes[n.parent].path, text::to_nfc(last_of(n.path)));
    for (std::string& name : n.dimensions) name = text::to_nfc(name);
  }
}

store_tree read_tree(const store_folder& root, const store_folder& store, const std::vector<conversion::source_node>& joined,
                     const std::vector<std::string>& include, const std::vector<std::string>& exclude,
                     const std::function<bool(const text::json& link)>& is_link,
                     const std::function<void(const std::string& path)>& report_progress) {
  store_tree tree;
  std::map<std::string, std::shared_ptr<const conversion::source_node>> joined_arrays;  // by their paths in the first store
  for (const conversion::source_node& node : joined) {
    if (node.is_array)
      joined_arrays.emplace(root.path() + (root.path().empty() ? node.path.substr(1)
                                           : node.path == "/"  ? ""
                                                               : node.path),
                            std::make_shared<conversion::source_node>(node));
  }
  const auto find_joined = [&](const store_folder& folder) {
    const auto entry = joined_arrays.find(folder.path());
    return entry == joined_arrays.end() ? nullptr : entry->second;
  };
  const auto note_of_root = [&](const store_node& node) {
    if (node.note("convention").is_string()) tree.convention = node.note("convention").get<std::string>();
    const text::json& selection = node.note("selection");
    if (selection.is_object() && selection.value("object", text::json()).is_string())
      tree.top = text::unescape_name(selection["object"].get<std::string>());
  };
  const store_node top = read_store_node(root);
  note_of_root(read_store_node(store));
  if (!root.path().empty()) tree.top = path_below(tree.top, root.path());
  const auto look_at = [&](const store_node& node) {
    tree.has_notes = tree.has_notes || !node.notes.empty();
    const text::json& values = node.note("attribute_values");
    tree.max_attributes = std::max(tree.max_attributes, node.attributes.size() + (values.is_object() ? values.size() : 0));
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
    n.joined = find_joined(root);
    if (top.is_array) describe_array(n, read_node(n));
    tree.nodes.push_back(std::move(n));
    return tree;
  }
  tree.nodes.push_back({root, tree_node::kind_type::group, "/", 0});
  tree.selection = text::selection(include, exclude);
  std::vector<noted_link> all_links;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    if (tree.nodes[i].kind != tree_node::kind_type::group) continue;
    const std::string path = tree.nodes[i].path;
    report_progress(path);
    const store_folder folder = tree.nodes[i].folder;
    const store_node group = read_store_node(folder);
    const text::json& links = group.note("links");
    std::map<std::string, std::size_t> by_name;  // of all_links
    for (auto link = links.begin(); links.is_object() && link != links.end(); ++link) {
      const std::string name = text::unescape_name(link.key());
      by_name[name] = all_links.size();
      all_links.push_back({i, path_below(path, name), target_of(path, link.value())});
    }
    std::vector<store_folder> children = folder.nodes();
    std::sort(children.begin(), children.end(), [](const store_folder& a, const store_folder& b) { return a.path() < b.path(); });
    tree.nodes[i].is_ordered = put_in_order(children, group);
    for (const store_folder& child : children) {
      const std::string name = name_in_file(group, child.leaf_name());
      if (const auto noted = by_name.find(name); noted != by_name.end() && is_link(links[text::escape_name(name)])) {
        noted_link* const link = &all_links[noted->second];
        if (!reason_not_to_read(child).empty()) continue;
        link->copy = tree_node{child, tree_node::kind_type::grouped, link->path, i};
        link->copy->joined = find_joined(child);
        if (const store_node node = read_node(*link->copy); node.is_array) describe_array(*link->copy, node);
        else if (!is_grouped_dataset(node)) link->copy.reset();
        continue;
      }
      if (!is_link_name(name)) {
        tree.unnamed.push_back(
            {path_below(path, text::escape_name(name)), {reason_code::invalid_name, "HDF5 cannot have this name"}});
        continue;
      }
      const text::coded_reason reason = reason_not_to_read(child);
      if (!reason.empty()) {
        tree.unnamed.push_back({path_below(path, text::escape_name(name)), reason});
        continue;
      }
      tree_node n{child, tree_node::kind_type::group, path_below(path, name), i};
      n.joined = find_joined(child);
      const store_node node = read_node(n);
      look_at(node);
      if (depth_of(n.path) > max_group_depth) {
        tree.unnamed.push_back(
            {n.path, {reason_code::unsupported_feature, "groups nested more than " + std::to_string(max_group_depth) + " deep"}});
        continue;
      }
      if (node.is_array) describe_array(n, node);
      else if (is_grouped_dataset(node)) n.kind = tree_node::kind_type::grouped;
      else if (!node.note("datatype").is_null()) n.kind = tree_node::kind_type::named_type;
      tree.nodes.push_back(std::move(n));
    }
  }
  select(tree, all_links);
  return tree;
}

}  // namespace zarrbits::exporting
