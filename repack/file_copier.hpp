// SPDX-License-Identifier: BSL-1.0
//
// Copies the objects of a file into a new one: groups, datasets without their values, named types, links, comments, attributes.
//
//   file_copier copy(source, changes);
//   hdf5::created_file target(name, copy.creation_properties(page_size), access);
//   copy.run(target);
//   copy.open_copy(tree.objects[3]);
//
#ifndef ZARRBITS_REPACK_FILE_COPIER_HPP
#define ZARRBITS_REPACK_FILE_COPIER_HPP

#include "hdf5/source_file.hpp"
#include "repack/file_tree.hpp"
#include "repack/layout_rules.hpp"
#include "repack/reference_map.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zarrbits::repacking {

// The oldest format that has all that the objects of the source need.
H5F_libver_t lowest_format(const opened_contents& source, const dataset_changes& changes);

class file_copier {
 public:
  // The references live as long as this.
  file_copier(const opened_contents& source, const dataset_changes& changes);

  ~file_copier();
  file_copier(const file_copier&) = delete;
  file_copier& operator=(const file_copier&) = delete;

  // Those of the source, with pages of this size, or without.
  hdf5::handle creation_properties(std::uint64_t page_size) const;

  // Call before run(): the target has the object's copy already, at this address.
  void set_address(haddr_t object, haddr_t copy) { addresses_[object] = copy, given_.insert(object); }
  // Call it once. Throws hdf5::failure, with the path.
  void run(hid_t target);

  hdf5::handle open_copy(const tree_object& o) const;
  haddr_t address_of_copy(const tree_object& o) const { return addresses_.at(o.address); }
  const reference_map& references() const { return *references_; }

 private:
  void copy_types();
  hdf5::handle type_in_target(hid_t type);
  void copy_group_links(const tree_object& o);
  void copy_link(hid_t group, const tree_link& link);
  // For a dataset whose fill value leads to what may not be made yet.
  void defer(hid_t group, const tree_link& link);
  hdf5::handle create_object(hid_t group, const tree_link& link, const tree_object& o);
  hdf5::handle create_dataset(hid_t group, const tree_link& link, const tree_object& o, hid_t properties_of_link);
  void copy_comment(const tree_object& o) const;
  void copy_attributes(const tree_object& o);
  void copy_attribute(hid_t from, hid_t to, const std::string& name);
  void find_filters_of_plugins();
  void register_placeholders(bool missing);
  void restore_filters();

  const hdf5::source_file& source_;
  const file_tree& tree_;
  const file_contents& contents_;
  const dataset_changes& changes_;
  hid_t target_ = H5I_INVALID_HID;
  std::map<haddr_t, haddr_t> addresses_;                            // of objects and of their copies
  std::set<haddr_t> given_;                                         // those of set_address()
  std::map<haddr_t, hdf5::handle> named_types_;                     // by address in the source
  bool has_deferred_ = false, makes_deferred_ = false;              // datasets whose fill values lead to other objects
  std::map<haddr_t, hdf5::handle> recoded_;                         // datasets that are created before all others
  std::map<H5Z_filter_t, const H5Z_class2_t*> filters_of_plugins_;  // null: libhdf5 has none
  std::optional<reference_map> references_;
};

}  // namespace zarrbits::repacking

#endif
