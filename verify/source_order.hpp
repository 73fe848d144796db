// SPDX-License-Identifier: BSL-1.0
//
// The sources of a store, and their order where files were joined: computed for verification alone, as their values are.
//
#ifndef ZARRBITS_VERIFY_SOURCE_ORDER_HPP
#define ZARRBITS_VERIFY_SOURCE_ORDER_HPP

#include <zarrbits/verify.hpp>

#include <string>
#include <vector>

namespace zarrbits::verification {

// All names of sources, as they were given.
std::vector<std::string> sources_of(const verify_options& options);

// The names from sources_of() in the order in which they were joined. The order by value opens each file. Throws
// zarrbits::error, source_error.
std::vector<std::string> sources_in_order(const verify_options& options);

}  // namespace zarrbits::verification

#endif
