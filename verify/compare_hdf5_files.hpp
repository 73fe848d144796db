// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_VERIFY_COMPARE_HDF5_FILES_HPP
#define ZARRBITS_VERIFY_COMPARE_HDF5_FILES_HPP

#include <zarrbits/verify.hpp>

#include <string>

namespace zarrbits::verification {

// True if `name` ("b.h5", "b.h5:/a", or on a server) is an HDF5 file, not a store. Of a local file, its content decides.
bool is_hdf5_name(const std::string& name);

// Compares `options.source` with `options.store`, both of which are HDF5 files. Throws zarrbits::error, source_error.
verify_result compare_hdf5_files(const verify_options& options);

}  // namespace zarrbits::verification

#endif
