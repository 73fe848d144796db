// SPDX-License-Identifier: BSL-1.0
//
// The versions of HDF5 that read a file which zarrbits writes.
//
//   zarrbits::export_store({.store = "in.zarr", .target = "out.h5", .format = zarrbits::file_format::latest});
//
#ifndef ZARRBITS_FILE_FORMAT_HPP
#define ZARRBITS_FILE_FORMAT_HPP

#include <zarrbits/detail/requirements.hpp>

namespace zarrbits {

// The versions of HDF5 that read the file.
enum class file_format {
  compatible,  // all since 1.8
  latest,      // that of the libhdf5 that writes, and newer ones; chunks are found faster in datasets that grow
};

}  // namespace zarrbits

#endif
