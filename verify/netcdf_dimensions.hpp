// SPDX-License-Identifier: BSL-1.0
//
// The dimensions of a netCDF-4 file, read again from HDF5 for the comparison: the datasets that are only dimensions, and the
// names and lengths of each variable's dimensions. It follows netCDF's rules; the converter has a separate reader for them.
//
#ifndef ZARRBITS_VERIFY_NETCDF_DIMENSIONS_HPP
#define ZARRBITS_VERIFY_NETCDF_DIMENSIONS_HPP

#include "verify/source_tree.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::verification {

class netcdf_dimensions {
 public:
  explicit netcdf_dimensions(source_tree& tree);

  struct dimension {
    std::uint64_t length = 0;
    bool has_variable = true;
    std::string name;
  };
  // The dimension whose scale is at this address; null if absent.
  const dimension* find(haddr_t address) const;
  bool has_no_variable(haddr_t address) const { return find(address) && !find(address)->has_variable; }
  // For each dimension of a dataset: netCDF's dimension, or null if it has none.
  std::vector<const dimension*> dimensions_of(haddr_t dataset) const;
  // The netCDF name of a link in a group: "x" for "_nc4_non_coord_x", unless another variable has it.
  std::string name_of(const source_object& group, const source_link& link) const;
  // True if another variable in the group has the netCDF name of a dimension without a variable: "_nc4_non_coord_x" beside "x".
  bool has_hidden(const source_object& group, const source_link& link) const;

 private:
  std::map<haddr_t, dimension> dimensions_;
  std::map<haddr_t, std::vector<haddr_t>> scales_;  // by dataset
};

// True for a file NAME.nc.
bool has_netcdf_name(source_tree& tree);

// True if a dataset has netCDF's number of a dimension.
bool has_netcdf_dimensions(source_tree& tree);

// True for a dataset that says that it is a netCDF dimension without a variable.
bool is_dimension_only(hid_t dataset);

// The path of the only dataset of a file that has nothing else but netCDF's bookkeeping, as `export` writes a store that is one
// array; "" for any other file.
std::string only_dataset(hid_t file);

}  // namespace zarrbits::verification

#endif
