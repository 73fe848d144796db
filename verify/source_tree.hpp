// SPDX-License-Identifier: BSL-1.0
//
// All reachable objects of the source, each one once: addresses identify them, so groups that contain themselves are harmless.
//
#ifndef ZARRBITS_VERIFY_SOURCE_TREE_HPP
#define ZARRBITS_VERIFY_SOURCE_TREE_HPP

#include "text/selection.hpp"
#include "verify/comparison_progress.hpp"
#include "verify/source_objects.hpp"
#include "verify/source_values.hpp"

#include <map>
#include <string>
#include <vector>

namespace zarrbits::verification {

struct source_link {
  std::string name;
  H5L_type_t type = H5L_TYPE_HARD;
  haddr_t target = HADDR_UNDEF;  // target of a hard link; undefined: it cannot be opened
  std::string reason;            // why it cannot be opened
};

struct source_object {
  H5O_type_t type = H5O_TYPE_UNKNOWN;
  std::string path;                // one of its paths
  haddr_t parent = HADDR_UNDEF;    // the group of that path
  std::vector<source_link> links;  // group only
  std::vector<std::string> names;  // names of the hard links to it
  std::string reason;              // why the group cannot be listed, or empty
  bool has_attributes = false;
  std::uint64_t bytes = 0;  // of its elements in memory; 0 if they were not counted
  bool in_store = false;
  bool selected = false;    // wanted under one of its paths
  bool unselected = false;  // unwanted under another
  bool disclaimed = false;  // the store says that it was unwanted, under one of its paths

  bool only_disclaimed() const { return !in_store && !unselected && disclaimed; }
};

std::string child_path(const std::string& parent, const std::string& name);

class source_tree final : public source_objects {
 public:
  // Lists the object `top` ("/": all) and everything below. `progress` gets the path of each group. Throws source_error.
  source_tree(hid_t file, const std::string& top, comparison_progress& progress);
  // Lists an open object instead, the target of links of `source` by `path`, in its own file or another. The tree belongs to
  // the object's file: addresses are of this file, and paths go through the links.
  source_tree(const source_tree& source, hid_t object, const std::string& path, comparison_progress& progress);
  // An object is wanted if any of its links is, and includes everything below it.
  void select(text::selection& requested, text::selection& claimed);

  // Call after select(): begins the progress with the number of selected objects, and the bytes of their elements.
  void count_work(comparison_progress& progress);

  haddr_t root() const { return root_; }
  // True if it is in the tree's file.
  bool is_in_file(hid_t object) const;
  // True if it is a group on this path, which begins in the source.
  bool is_on_path(const std::string& path, const H5O_info_t& object) const;
  // True if the object is one of the tree.
  bool contains(const H5O_info_t& info) const { return info.fileno == number_ && objects_.contains(info.addr); }
  const std::string& top() const { return top_; }
  std::map<haddr_t, source_object>& objects() { return objects_; }
  const std::map<haddr_t, source_object>& objects() const { return objects_; }
  source_object& object_at(haddr_t address) { return objects_[address]; }
  hdf5::handle open(haddr_t address) const { return hdf5::handle(H5Oopen_by_addr(file_, address)); }

  hid_t file() const override { return file_; }
  std::optional<std::uint64_t> address_of(const std::string& path) const override;
  std::vector<std::string> names_of(std::uint64_t address) const override;
  bool reachable(std::uint64_t address) const override { return !names_of(address).empty() || address == root_; }

 private:
  void list(hid_t root, comparison_progress& progress);
  void list_group(haddr_t address, source_object& group);

  hdf5::handle file_handle_;  // keeps the file open, if it is not the source
  hid_t file_, source_;       // source: where paths begin
  unsigned long number_ = 0;  // libhdf5's number of the file
  std::string top_;
  haddr_t root_ = 0;
  std::map<haddr_t, source_object> objects_;
};

}  // namespace zarrbits::verification

#endif
