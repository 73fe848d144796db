// SPDX-License-Identifier: BSL-1.0
//
// The arrays of a Zarr store.
//
#ifndef ZARRBITS_DIGEST_ZARR_DIGEST_HPP
#define ZARRBITS_DIGEST_ZARR_DIGEST_HPP

#include <zarrbits/digest.hpp>

#include <vector>

namespace zarrbits::digesting {

// Throws zarrbits::error, zarr::store_error, zarr::not_supported.
void digest_zarr(const digest_options& options, digest_report& report);

}  // namespace zarrbits::digesting

#endif
