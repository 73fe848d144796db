// SPDX-License-Identifier: BSL-1.0
//
// The options in the plan of an unfinished store: who resumes it need not give them again.
//
#ifndef ZARRBITS_CONVERT_RUN_PLAN_OPTIONS_HPP
#define ZARRBITS_CONVERT_RUN_PLAN_OPTIONS_HPP

#include "convert/text/json_text.hpp"

#include <zarrbits/convert.hpp>

namespace zarrbits::conversion {

// All options that a byte of the store may depend on.
json plan_options(const convert_options& options);

// Gives options that are not set the values of `plan`, as plan_options() wrote them. True where there were some. Throws
// convert_error where the plan is none, or has another value for one that is set.
bool take_plan_options(const json& plan, convert_options& options);

}  // namespace zarrbits::conversion

#endif
