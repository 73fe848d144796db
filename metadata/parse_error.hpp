// SPDX-License-Identifier: BSL-1.0
//
// What metadata that were read have wrong.
//
#ifndef ZARRBITS_METADATA_PARSE_ERROR_HPP
#define ZARRBITS_METADATA_PARSE_ERROR_HPP

#include <stdexcept>

namespace zarrbits::metadata {

// They violate the Zarr specification: a sentence.
struct parse_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// They may be right, but have something that zarrbits does not know: what() is its name.
struct unknown_extension : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace zarrbits::metadata

#endif
