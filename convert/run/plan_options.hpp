// SPDX-License-Identifier: BSL-1.0
//
// The options in the plan of an unfinished store: a caller that resumes it need not give them again.
//
#ifndef ZARRBITS_CONVERT_RUN_PLAN_OPTIONS_HPP
#define ZARRBITS_CONVERT_RUN_PLAN_OPTIONS_HPP

#include "convert/text/json_text.hpp"

#include <zarrbits/convert.hpp>

namespace zarrbits::conversion {

// All options that may affect a byte of the store.
json plan_options(const convert_options& options);

// Sets unset options to the values of `plan`, from plan_options(). True if there were some. Throws convert_error if the plan is
// invalid, or has another value for a set option.
bool take_plan_options(const json& plan, convert_options& options);

}  // namespace zarrbits::conversion

#endif
