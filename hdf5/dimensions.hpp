// SPDX-License-Identifier: BSL-1.0
//
// Names of dimensions: HDF5's dimension scales and labels, or else netCDF's rule.
//
#ifndef ZARRBITS_HDF5_DIMENSIONS_HPP
#define ZARRBITS_HDF5_DIMENSIONS_HPP

#include "hdf5/source_file.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::hdf5 {

class dimension_namer {
 public:
  explicit dimension_namer(const source_file& source) : source_(source) {}

  // One name for each extent of `shape`, all different except those that a convention gives. The first `rank` are the dataset's
  // own dimensions; others (array types, opaque bytes) were added. A dimension with scales has the name of one of them; else its
  // label; else "phony_dim_<n>", the same for all dimensions of that length in the group, so that xarray opens the group as a
  // dataset.
  std::vector<std::string> names(const source_object& o, hid_t dataset, std::span<const std::uint64_t> shape, std::size_t rank);

  // Like names(), with "" for dimensions that would get a phony name: for questions about names that users know.
  std::vector<std::string> known_names(const source_object& o, hid_t dataset, std::size_t rank) const;

  // Names without a dataset, for arrays that we create below `group`.
  std::vector<std::string> phony(const std::string& group, std::span<const std::uint64_t> shape);

 private:
  void fill_in(const std::string& group, std::span<const std::uint64_t> shape, std::vector<std::string>& names);

  const source_file& source_;
  std::map<std::pair<std::string, std::uint64_t>, std::vector<std::string>> phony_;  // group and length
  std::size_t next_ = 0;
};

// The scales of each dimension, as references; none if the dataset has no list of them for `rank` dimensions. Throws failure.
std::vector<std::vector<hobj_ref_t>> dimension_scales(hid_t dataset, std::size_t rank);

// True if the object's CLASS attribute says so.
bool is_dimension_scale(hid_t object);

// True for a scale that netCDF made for a dimension without values.
bool is_dimension_without_variable(hid_t dataset);

}  // namespace zarrbits::hdf5

#endif
