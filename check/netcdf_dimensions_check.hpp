// SPDX-License-Identifier: BSL-1.0
//
// Attributes by which HDF5's dimension scales and netCDF-4 attach dimensions to variables. Each relation is stored twice, and may
// contradict itself: DIMENSION_LIST and REFERENCE_LIST, _Netcdf4Dimid and _Netcdf4Coordinates.
//
#ifndef ZARRBITS_CHECK_NETCDF_DIMENSIONS_CHECK_HPP
#define ZARRBITS_CHECK_NETCDF_DIMENSIONS_CHECK_HPP

#include "check/finding_list.hpp"
#include "hdf5/source_file.hpp"

namespace zarrbits::checking {

// After source.walk().
void check_netcdf_dimensions(const hdf5::source_file& source, finding_list& findings);

}  // namespace zarrbits::checking

#endif
