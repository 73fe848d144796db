// SPDX-License-Identifier: BSL-1.0
//
// netCDF-4, as xarray reads it from HDF5: the names and lengths of its dimensions, attributes of one element as scalars,
// characters as bytes.
//
#ifndef ZARRBITS_CONVERT_CONVENTION_NETCDF_HPP
#define ZARRBITS_CONVERT_CONVENTION_NETCDF_HPP

#include "convert/convention/convention_rules.hpp"

namespace zarrbits::conversion {

bool is_netcdf(const source_file& file);
void arrange_netcdf(source_file& file);
void netcdf_attributes(const source_file& file, const source_object& object, hid_t id, const type_tree* leaf, json& attributes);

inline constexpr convention_rules netcdf_rules = {.which = zarrbits::convention::netcdf,
                                                  .recognise = is_netcdf,
                                                  .arrange = arrange_netcdf,
                                                  .attributes = netcdf_attributes,
                                                  .notes_apart = true,
                                                  .links_are_objects = true};

}  // namespace zarrbits::conversion

#endif
