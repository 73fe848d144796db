// SPDX-License-Identifier: BSL-1.0
//
// Dimensions of netCDF-4, which are HDF5's dimension scales, for the dimension names of a store.
//
#ifndef ZARRBITS_EXPORT_DIMENSION_SCALES_HPP
#define ZARRBITS_EXPORT_DIMENSION_SCALES_HPP

#include "export/store_tree.hpp"
#include "export/type_spec.hpp"
#include "hdf5/h5.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zarrbits::exporting {

struct scale {
  std::string name;
  std::uint64_t length = 0;
  std::size_t group = 0;                // where it is defined
  std::optional<std::size_t> variable;  // the node that has its values; none: a dimension without a variable
  bool unlimited = false;
  bool is_taken = false;                         // something else has its name, so it is not in the file
  bool is_created = false;                       // without a variable, in the file
  std::optional<std::int64_t> id;                // that netCDF gave it in the source
  text::json attributes = text::json::object();  // of a dimension without a variable
  text::json notes = text::json::object();
  std::set<std::size_t> used_in = {};  // the groups of the arrays that have it
};

class dimension_scales {
 public:
  // Finds the dimensions, and renames arrays that are called like a dimension that they do not have, as netCDF does. For files
  // that netCDF has to read (`netcdf_types`), every dimension of an array that names some gets a name, and one length. Throws
  // store_error.
  dimension_scales(store_tree& tree, const spec_rules& rules);

  const std::vector<scale>& scales() const noexcept { return scales_; }
  // Names of dimensions that are other ones in the file: by the path of the array, and why.
  const std::vector<left_out>& renamed() const noexcept { return renamed_; }
  bool is_scale(std::size_t node) const { return variables_.contains(node); }
  // Creates the scales without a variable, also those whose variable is not in the file. Their attributes are the caller's task.
  // Throws hdf5::failure.
  void create(hid_t file);
  // Attaches all of them to the datasets that are in the file, when these have their attributes. Throws hdf5::failure.
  void attach(hid_t file);

  std::string path_of(const scale& s) const;
  bool is_made(const scale& s) const;

 private:
  // `length`: none if any will do.
  std::optional<std::size_t> visible(std::size_t group, const std::string& name, std::optional<std::uint64_t> length) const;
  std::optional<std::size_t> nearest_coordinate(const tree_node& array, const std::string& dimension, std::uint64_t length) const;
  void define_noted(std::size_t group);
  void find_dimensions(std::size_t array);
  std::optional<std::size_t> find(const tree_node& array, std::size_t dimension, bool noted_by_netcdf);
  bool names_dimensions(const tree_node& array) const;
  bool has_other_values(std::size_t group, const std::string& name, std::uint64_t length) const;
  bool is_hidden(const tree_node& array, std::size_t scale) const;
  bool would_hide(std::size_t group, const std::string& name) const;
  void name_all(std::size_t array, const store_node& node);
  std::size_t define(scale s);
  void name_variables();
  void rename_taken();
  std::vector<std::int32_t> ids() const;
  // For a dimension whose name the file does not have.
  void add_renamed(const std::string& path, const std::string& sentence) {
    renamed_.push_back({path, {reason_code::invalid_name, sentence}});
  }

  store_tree& tree_;
  const spec_rules& rules_;
  std::vector<scale> scales_;
  bool names_some_ = false;                                                 // a dimension of the file has a name
  std::map<std::pair<std::size_t, std::string>, std::size_t> by_name_;      // of a group
  std::map<std::size_t, std::vector<std::optional<std::size_t>>> of_node_;  // for each dimension
  std::multimap<std::string, std::size_t> coordinates_;                     // arrays called like their first dimension
  std::set<std::size_t> variables_;                                         // that have the values of a scale
  std::map<std::string, std::size_t> without_dataspace_;                    // scales by their path
  std::set<std::size_t> with_all_ids_, with_first_id_;                      // arrays that note those of their dimensions
  std::vector<left_out> renamed_;
};

// Names of dimensions without scales, as HDF5 has them: DIMENSION_LABELS. Throws hdf5::failure.
void write_labels(hid_t dataset, const std::vector<std::string>& names);

}  // namespace zarrbits::exporting

#endif
