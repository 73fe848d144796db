// SPDX-License-Identifier: BSL-1.0
//
// netCDF-4, as xarray reads it from HDF5: the names and lengths of its dimensions, attributes as libnetcdf gives them, characters
// as bytes. libnetcdf also opens HDF5 files of other makers; those of CF, HDF-EOS, and with dimension scales, are read as netCDF.
//
#ifndef ZARRBITS_CONVENTIONS_NETCDF_HPP
#define ZARRBITS_CONVENTIONS_NETCDF_HPP

#include "conventions/convention_rules.hpp"

namespace zarrbits::conventions {

bool is_netcdf(const hdf5::source_file& file);
void override_netcdf_schema(hdf5::source_file& file);
// The name of an attribute by which CF gives values a meaning, if a dataset has one; else "".
std::string cf_attribute(const hdf5::source_file& file);
inline constexpr convention_rules netcdf_rules = {.kind = zarrbits::convention::netcdf,
                                                  .recognise = is_netcdf,
                                                  .override_schema = override_netcdf_schema,
                                                  .form = {.netcdf = true, .bare_nan = true},
                                                  .reserved_names = true,
                                                  .links_are_objects = true,
                                                  .consolidated = true};

}  // namespace zarrbits::conventions

#endif
