// SPDX-License-Identifier: BSL-1.0
//
// netCDF-4, as xarray reads it from HDF5: the names and lengths of its dimensions, attributes as libnetcdf gives them, characters
// as bytes. libnetcdf also opens HDF5 files of other makers; those of CF, HDF-EOS, and with dimension scales, are read as netCDF.
//
#ifndef ZARRBITS_CONVERT_CONVENTION_NETCDF_HPP
#define ZARRBITS_CONVERT_CONVENTION_NETCDF_HPP

#include "convention/convention_rules.hpp"

namespace zarrbits::conventions {

bool is_netcdf(const hdf5::source_file& file);
void arrange_netcdf(hdf5::source_file& file);
// The name of an attribute by which CF gives values a meaning, if a dataset has one; else "".
std::string cf_attribute(const hdf5::source_file& file);
inline constexpr convention_rules netcdf_rules = {.which = zarrbits::convention::netcdf,
                                                  .recognise = is_netcdf,
                                                  .arrange = arrange_netcdf,
                                                  .form = {.netcdf = true, .bare_nan = true},
                                                  .reserved_names = true,
                                                  .links_are_objects = true,
                                                  .consolidated = true};

}  // namespace zarrbits::conventions

#endif
