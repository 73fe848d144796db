// SPDX-License-Identifier: BSL-1.0
//
// Options that ask something of datasets of a rank, or of those that a pattern matches: an option that no dataset can obey is an
// error, as it is for `include`.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_OPTION_CHECKS_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_OPTION_CHECKS_HPP

#include "hdf5/source_file.hpp"

#include <zarrbits/convert.hpp>

namespace zarrbits::conversion {

// Call after the objects are selected, and joined with those of other files. Throws zarrbits::error.
void require_applicable_options(const hdf5::source_file& source, const convert_options& options);

}  // namespace zarrbits::conversion

#endif
