// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_CONVERT_FROM_HDF5_FILE_IDENTITY_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_FILE_IDENTITY_HPP

#include "convert/pipeline/conversion_source.hpp"
#include "hdf5/source_file.hpp"

#include <string>

namespace zarrbits::conversion {

// `joined`: joined_store::checksum. Throws zarrbits::error.
source_identity identity_of(const hdf5::source_file& file, const std::string& joined);

}  // namespace zarrbits::conversion

#endif
