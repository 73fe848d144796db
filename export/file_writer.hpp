// SPDX-License-Identifier: BSL-1.0
//
// Writes what a store has into an open HDF5 file: objects, values, links, dimensions, attributes, in this order.
//
#ifndef ZARRBITS_EXPORT_FILE_WRITER_HPP
#define ZARRBITS_EXPORT_FILE_WRITER_HPP

#include "export/dataset_spec.hpp"
#include "export/dimension_scales.hpp"
#include "export/grouped_dataset.hpp"
#include "export/netcdf_types.hpp"
#include "export/path_references.hpp"
#include "export/store_tree.hpp"

#include <zarrbits/export.hpp>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::exporting {

// True if the store is that of a netCDF file: `convert` noted it, or arrays have the values of their own dimension, as xarray's.
bool looks_like_netcdf(const store_tree& tree);

class file_writer {
 public:
  file_writer(hid_t file, store_tree& tree, const spec_rules& rules, const export_options& options, export_report& report);
  // Throws zarrbits::error and what the functions of zarr/read and hdf5 throw.
  void run();

 private:
  void create_all();
  void create_group(tree_node& n);
  void create_dataset(std::size_t index);
  void warn_of_chunks(const tree_node& n, const conversion::source_array& array, const dataset_spec& form) const;
  void commit_type(hid_t group, const std::string& name, const text::json& note, const std::string& path);
  void create_named_types(std::size_t index, const store_node& node);
  hdf5::handle dataset(const tree_node& n, const type_spec& type, const array::extents& dims, const array::extents& max_dims,
                       const array::extents& chunk, bool null, hid_t properties);
  void set_fill(hid_t properties, const conversion::source_array& array, const dataset_spec& form);
  void write_dataset(std::size_t index, bool with_references);
  void write_array(tree_node& n, const store_node& node, exported_object& entry, bool with_references);
  void create_links(std::size_t index);
  void write_link(const std::string& group, const std::string& name, const text::json& note, exported_object& entry);
  void attributes_of(std::size_t index);
  void attributes_of_scales();
  void put_attributes(hid_t object, const std::string& path, const text::json& attributes, const text::json& notes,
                      const zarr::zarr_type* array, bool big_endian, bool is_scale);
  // Adds what netCDF's programs need to know about a type that netCDF does not have.
  void add_attributes_of_type(const conversion::source_array& array, store_node& node, exported_object attribute);
  // Reports an object that is left out of the file.
  void skip(exported_object& entry, const text::coded_reason& reason);
  // References of the value that was just written.
  void note_dangling(exported_object& entry);
  void remove(tree_node& n);
  exported_object& entry_of(std::size_t index) { return report_.objects[entries_[index]]; }
  // A name or a path of the notes, as the file has it.
  std::string name_of_note(const std::string& shown_name) const;
  hdf5::handle group_properties(const tree_node& group) const;
  void order_links(const tree_node& group);
  // A group of the tree that stays open for its members: by a path, libhdf5 would go through all groups above.
  hid_t group(std::size_t index);
  hdf5::handle open(const tree_node& n);

  hid_t file_;
  store_tree& tree_;
  const export_options& options_;
  export_report& report_;
  spec_rules rules_;
  std::optional<dimension_scales> scales_;
  committed_types types_;
  path_references references_;
  hdf5::handle links_;                // properties of links: UTF-8 names
  std::vector<std::size_t> entries_;  // of each node, in the report
  std::map<std::size_t, hdf5::handle> open_groups_;
};

}  // namespace zarrbits::exporting

#endif
