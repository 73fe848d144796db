// SPDX-License-Identifier: BSL-1.0
//
// The sources of a conversion, and the order in which several are joined.
//
#ifndef ZARRBITS_CONVERT_PIPELINE_JOINING_ORDER_HPP
#define ZARRBITS_CONVERT_PIPELINE_JOINING_ORDER_HPP

#include <zarrbits/convert.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// All names of sources, as they were given.
std::vector<std::string> given_sources(const std::string& first, const std::optional<concatenation>& concat);

// The names of all sources in `options`, which have `concat`, in the order in which they are joined. `first_value`: the first
// value of the dimension in a source; called only if the order is by value.
std::vector<std::string> ordered_sources(const convert_options& options,
                                         const std::function<long double(const std::string& source)>& first_value);

}  // namespace zarrbits::conversion

#endif
