// SPDX-License-Identifier: BSL-1.0
//
// The dimensions of a netCDF-4 file, read again from HDF5 for the comparison: which datasets are dimensions and nothing else,
// what a variable's dimensions are called, and how long they are. netCDF's own rules; the converter has its own reader of them.
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
  // The dimension whose scale lies at this address; null where that is none.
  const dimension* at(haddr_t address) const;
  bool has_no_variable(haddr_t address) const { return at(address) && !at(address)->has_variable; }
  // Of a dataset, for each of its dimensions: the dimension, or null where it has none of netCDF's.
  std::vector<const dimension*> of(haddr_t dataset) const;
  // The name that a link of a group has in netCDF: "x" for "_nc4_non_coord_x", where no variable has it.
  std::string name_of(const source_object& group, const source_link& link) const;

 private:
  std::map<haddr_t, dimension> dimensions_;
  std::map<haddr_t, std::vector<haddr_t>> scales_;  // by dataset
};

// True of a dataset that says that it is a dimension of netCDF without a variable.
bool is_dimension_alone(hid_t dataset);

}  // namespace zarrbits::verification

#endif
