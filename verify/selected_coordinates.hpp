// SPDX-License-Identifier: BSL-1.0
//
// The coordinate variables that a store must have because of what `include` selects.
//
#ifndef ZARRBITS_VERIFY_SELECTED_COORDINATES_HPP
#define ZARRBITS_VERIFY_SELECTED_COORDINATES_HPP

#include "verify/convention.hpp"
#include "verify/source_tree.hpp"

#include <zarrbits/verify.hpp>

#include <string>
#include <vector>

namespace zarrbits::verification {

// Their paths, as patterns match them; none without `with_coordinates`. NetCDF's dimensions without a variable are not among
// them. What cannot be read is skipped: it is reported where attributes are compared.
std::vector<std::string> selected_coordinates(const verify_options& options, const source_tree& tree, const convention& rules);

}  // namespace zarrbits::verification

#endif
