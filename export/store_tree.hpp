// SPDX-License-Identifier: BSL-1.0
//
// The nodes of a store, and where each is in the file.
//
#ifndef ZARRBITS_EXPORT_STORE_TREE_HPP
#define ZARRBITS_EXPORT_STORE_TREE_HPP

#include "convert/from_zarr/source_array.hpp"
#include "convert/from_zarr/store_source.hpp"
#include "export/store_node.hpp"
#include "text/coded_reason.hpp"
#include "text/reserved_names.hpp"
#include "text/selection.hpp"
#include "zarr/read/store_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zarrbits::exporting {

struct tree_node {
  enum class kind_type {
    group,
    array,
    grouped,     // a group that is one dataset in the file
    named_type,  // a group with the attributes of a named type
  };
  zarr::store_folder folder;
  kind_type kind = kind_type::group;
  std::string path;                                            // in the file; bytes as HDF5 has them
  std::size_t parent = 0;                                      // the root is its own
  std::vector<std::string> dimensions = {};                    // of an array
  std::vector<std::uint64_t> shape = {};                       // of an array
  bool is_created = false;                                     // it is in the file
  bool is_ordered = false;                                     // a group that notes the order of its links
  std::shared_ptr<const conversion::source_node> joined = {};  // of an array of several stores: it, for all of them
};

// Throw zarr::store_error, and the latter zarr::not_supported.
store_node read_node(const tree_node& n);
conversion::source_array open_array(const tree_node& n);

struct left_out {
  std::string path;
  text::coded_reason reason;
};

struct store_tree {
  std::vector<tree_node> nodes;    // parents come before their children, in the order that is noted, or of their names
  std::vector<left_out> unnamed;   // nodes whose names HDF5 cannot have
  std::string convention;          // that `convert` noted, or ""
  std::string top;                 // the source's object that became the root, or ""
  bool has_notes = false;          // of `convert`, anywhere
  std::size_t max_attributes = 0;  // of one node
  text::selection selection;       // what the user wants
};

// False for a link to another file that is not where a link in the file `target` would lead.
bool leads_to_a_file(const text::json& link, const std::string& target);

// Nodes that the notes of their group call links are left out if `is_link` is true for the note: their targets are elsewhere.
// Throws store_error.
// `store`: the store that `root` is a node of. `joined`: of several stores, all nodes. Throws zarrbits::error if a pattern
// matches nothing.
store_tree read_tree(const zarr::store_folder& root, const zarr::store_folder& store,
                     const std::vector<conversion::source_node>& joined, const std::vector<std::string>& include,
                     const std::vector<std::string>& exclude, const std::function<bool(const text::json& link)>& is_link,
                     const std::function<void(const std::string& path)>& report_progress);

// Gives nodes and dimensions the form of their names in which netCDF looks for them.
void normalize_names(store_tree& tree);

std::string path_below(const std::string& group, const std::string& name);
// "c" of "/a/b/c".
std::string last_of(const std::string& path);

}  // namespace zarrbits::exporting

#endif
