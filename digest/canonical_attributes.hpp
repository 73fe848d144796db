// SPDX-License-Identifier: BSL-1.0
//
// The digest of an object's attributes, equal in HDF5, netCDF and Zarr: docs/reference/digest.md has its form.
//
#ifndef ZARRBITS_DIGEST_CANONICAL_ATTRIBUTES_HPP
#define ZARRBITS_DIGEST_CANONICAL_ATTRIBUTES_HPP

#include "text/json_text.hpp"

#include <string>

namespace zarrbits::digesting {

// `attributes`: as convert makes them of those of an HDF5 object. "" if none of them counts.
std::string digest_attributes(const text::json& attributes);

}  // namespace zarrbits::digesting

#endif
