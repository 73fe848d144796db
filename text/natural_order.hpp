// SPDX-License-Identifier: BSL-1.0
//
// Names as people order them: "d9.nc" before "d10.nc".
//
#ifndef ZARRBITS_TEXT_NATURAL_ORDER_HPP
#define ZARRBITS_TEXT_NATURAL_ORDER_HPP

#include <string_view>

namespace zarrbits::text {

// Compares byte by byte, but digits as numbers. Different names are never equal.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace zarrbits::text

#endif
