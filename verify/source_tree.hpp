// SPDX-License-Identifier: BSL-1.0
//
// Everything that can be reached in the source, each object once: they are told apart by their addresses, so that groups that
// contain themselves end.
//
#ifndef ZARRBITS_VERIFY_SOURCE_TREE_HPP
#define ZARRBITS_VERIFY_SOURCE_TREE_HPP

#include "convert/text/selection.hpp"
#include "verify/source_objects.hpp"
#include "verify/source_values.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace zarrbits::verification {

struct source_link {
  std::string name;
  H5L_type_t type = H5L_TYPE_HARD;
  haddr_t target = HADDR_UNDEF;  // of a hard link; undefined: it cannot be opened
  std::string reason;            // then
};

struct source_object {
  H5O_type_t type = H5O_TYPE_UNKNOWN;
  std::string path;                // one of them
  haddr_t parent = HADDR_UNDEF;    // the group of that path
  std::vector<source_link> links;  // of a group
  std::vector<std::string> names;  // of the hard links to it
  std::string reason;              // why the group cannot be listed, where it cannot
  bool has_attributes = false;
  bool in_store = false;
  bool wanted = false;      // under one of its paths
  bool unwanted = false;    // under another
  bool disclaimed = false;  // the store says that it was not wanted, under one of its paths

  bool only_disclaimed() const { return !in_store && !unwanted && disclaimed; }
};

std::string child_path(const std::string& parent, const std::string& name);

class source_tree final : public source_objects {
 public:
  // Lists the object `top` ("/": all) and what is below. `at` hears of each group. Throws source_error.
  source_tree(hid_t file, const std::string& top, const std::function<void(const std::string& path)>& at);
  // The same of an open object that links of `source` lead to by `path`, in its own file or another. The tree is that of the
  // object's file: addresses are of this file, and paths go through the links.
  source_tree(const source_tree& source, hid_t object, const std::string& path,
              const std::function<void(const std::string& path)>& at);
  // An object is wanted by any of its links, and brings what is below it.
  void select(conversion::selection& wanted, conversion::selection& claimed);

  haddr_t root() const { return root_; }
  // It lies in the tree's file.
  bool in_its_file(hid_t object) const;
  // It is a group on this path, which begins in the source.
  bool leads_back(const std::string& path, const H5O_info_t& object) const;
  // The object is one of the tree.
  bool has(const H5O_info_t& info) const { return info.fileno == number_ && objects_.contains(info.addr); }
  const std::string& top() const { return top_; }
  std::map<haddr_t, source_object>& objects() { return objects_; }
  source_object& at(haddr_t address) { return objects_[address]; }
  handle open(haddr_t address) const { return handle(H5Oopen_by_addr(file_, address)); }

  hid_t file() const override { return file_; }
  std::optional<std::uint64_t> address_of(const std::string& path) const override;
  std::vector<std::string> names_of(std::uint64_t address) const override;
  bool reachable(std::uint64_t address) const override { return !names_of(address).empty() || address == root_; }

 private:
  void list(hid_t root, const std::function<void(const std::string& path)>& at);
  void list_group(haddr_t address, source_object& group);

  handle other_;              // keeps the file open, where it is not the source
  hid_t file_, source_;       // source: that paths begin in
  unsigned long number_ = 0;  // libhdf5's, of the file
  std::string top_;
  haddr_t root_ = 0;
  std::map<haddr_t, source_object> objects_;
};

}  // namespace zarrbits::verification

#endif
