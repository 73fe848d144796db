// SPDX-License-Identifier: BSL-1.0
//
// The arrays of an HDF5 file, as `convert` would write them: types, shapes and values are those of its plan, and its chunks go
// into sums in place of a store.
//
#ifndef ZARRBITS_DIGEST_HDF5_DIGEST_HPP
#define ZARRBITS_DIGEST_HDF5_DIGEST_HPP

#include <zarrbits/digest.hpp>

#include <vector>

namespace zarrbits::digesting {

// Throws zarrbits::error, hdf5::failure.
void digest_hdf5(const digest_options& options, digest_report& report);

}  // namespace zarrbits::digesting

#endif
