// SPDX-License-Identifier: BSL-1.0
//
// Dimensions of netCDF-4, which are HDF5's dimension scales, for the dimension names of a store.
//
#ifndef ZARRBITS_EXPORT_DIMENSION_SCALES_HPP
#define ZARRBITS_EXPORT_DIMENSION_SCALES_HPP

#include "export/store_tree.hpp"
#include "hdf5/h5.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::exporting {

struct scale {
  std::string name;
  std::uint64_t length = 0;
  std::size_t group = 0;                // where it is defined
  std::optional<std::size_t> variable;  // the node that has its values; none: a dimension without a variable
  bool unlimited = false;
  bool is_taken = false;             // something else has its name, so it is not in the file
  json attributes = json::object();  // of a dimension without a variable
  json notes = json::object();
};

class dimension_scales {
 public:
  // Finds the dimensions, and renames arrays that are called like a dimension that they do not have, as netCDF does. Throws
  // store_error.
  explicit dimension_scales(store_tree& tree);

  const std::vector<scale>& scales() const noexcept { return scales_; }
  // Creates the scales without a variable. Their attributes are the caller's task. Throws h5::failure.
  void create(hid_t file) const;
  // Attaches all of them to the datasets that are in the file, when these have their attributes. Throws h5::failure.
  void attach(hid_t file) const;

  std::string path_of(const scale& s) const;
  bool is_made(const scale& s) const;

 private:
  // `length`: none if any will do.
  std::optional<std::size_t> visible(std::size_t group, const std::string& name, std::optional<std::uint64_t> length) const;
  void name_variables();

  store_tree& tree_;
  std::vector<scale> scales_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> by_name_;      // of a group
  std::map<std::size_t, std::vector<std::optional<std::size_t>>> of_node_;  // for each dimension
};

// Names of dimensions without scales, as HDF5 has them: DIMENSION_LABELS. Throws h5::failure.
void write_labels(hid_t dataset, const std::vector<std::string>& names);

}  // namespace zarrbits::exporting

#endif
