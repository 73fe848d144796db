// SPDX-License-Identifier: BSL-1.0
//
// Whether a file is one of HDF5's, and what it is otherwise, by its first bytes.
//
//   foreign_format("CDF\x01...");   // "it is a netCDF-3 file, ...; \"nccopy -k nc4 IN.nc OUT.nc\" ..."
//
#ifndef ZARRBITS_HDF5_FOREIGN_FORMAT_HPP
#define ZARRBITS_HDF5_FOREIGN_FORMAT_HPP

#include <string>
#include <string_view>

namespace zarrbits::hdf5 {

// True for a file that libhdf5 takes for one of its own.
bool is_hdf5_file(const std::string& path);

// The reason and the remedy, as the end of a sentence; empty if the format is not known. `head`: the file's beginning.
std::string foreign_format(std::string_view head);

}  // namespace zarrbits::hdf5

#endif
