// SPDX-License-Identifier: BSL-1.0
//
// The attributes by which datasets name their dimension scales, as H5DSset_scale() and H5DSattach_scale() write them.
//
//   write_scale_list(dataset, {{}, {scale}});               // of the second dimension
//   write_scale_users(scale, {{reference_to(dataset), 1}});
//
#ifndef ZARRBITS_HDF5_SCALE_ATTRIBUTES_HPP
#define ZARRBITS_HDF5_SCALE_ATTRIBUTES_HPP

#include "hdf5/h5.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace zarrbits::hdf5 {

// Throws failure, as do all of these.
hobj_ref_t reference_to(hid_t file, const std::string& path);

// A string of fixed length.
void write_text_attribute(hid_t object, const char* name, const std::string& text);
void write_number_attribute(hid_t object, const char* name, const std::vector<std::int32_t>& numbers, bool scalar);

// NAME of a scale without values; netCDF has its dimensions without variables so.
std::string name_without_variable(std::uint64_t length);

// DIMENSION_LIST: the scales of each dimension.
void write_scale_list(hid_t dataset, std::vector<std::vector<hobj_ref_t>> scales);

// An element of REFERENCE_LIST: a dataset that has the scale in this dimension.
struct scale_user {
  hobj_ref_t dataset;
  std::int32_t dimension;
};
void write_scale_users(hid_t scale, const std::vector<scale_user>& users);

}  // namespace zarrbits::hdf5

#endif
