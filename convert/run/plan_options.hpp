// SPDX-License-Identifier: BSL-1.0
//
// The options in the plan of an unfinished store: a caller that resumes it need not give them again.
//
#ifndef ZARRBITS_CONVERT_RUN_PLAN_OPTIONS_HPP
#define ZARRBITS_CONVERT_RUN_PLAN_OPTIONS_HPP

#include "text/json_text.hpp"

#include <zarrbits/convert.hpp>

#include <string>

namespace zarrbits::conversion {

// All options that may affect a byte of the store.
text::json plan_options(const convert_options& options);

// Whether two plans mean the same store. Permissions (`keep_going`, `allow_expansion`) may differ: they change nothing that is
// made.
bool same_options(const text::json& plan, const text::json& other);

// Thrown for a set option that has another value in the plan, and for a plan that is invalid.
struct other_options {
  std::string names;  // "`codec`, `bits`"
};
struct invalid_plan {};

// Sets unset options to the values of `plan`, from plan_options(). True if there were some. With `same`, only permissions may be
// set otherwise. Throws other_options, invalid_plan; zarrbits::error if the options together make no sense.
bool take_plan_options(const text::json& plan, convert_options& options, bool same);

}  // namespace zarrbits::conversion

#endif
