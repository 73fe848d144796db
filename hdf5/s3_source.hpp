// SPDX-License-Identifier: BSL-1.0
//
// HDF5 files in S3. libhdf5 reads them itself, range by range, if it was built with its read-only S3 driver.
//
#ifndef ZARRBITS_HDF5_S3_SOURCE_HPP
#define ZARRBITS_HDF5_S3_SOURCE_HPP

#include "hdf5/h5.hpp"
#include "io/files.hpp"

#include <string>

namespace zarrbits::conversion {

struct s3_source {
  std::string url;   // name for H5Fopen
  file_state state;  // now
};

// Finds "s3://bucket/key", and sets libhdf5's driver for it. Throws zarrbits::error.
s3_source find_in_s3(const std::string& name, const std::string& endpoint, hid_t access);

}  // namespace zarrbits::conversion

#endif
