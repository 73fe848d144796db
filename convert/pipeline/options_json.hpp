// SPDX-License-Identifier: BSL-1.0
//
// The options in the plan of an unfinished store: a caller that resumes it need not set them again.
//
#ifndef ZARRBITS_CONVERT_PIPELINE_OPTIONS_JSON_HPP
#define ZARRBITS_CONVERT_PIPELINE_OPTIONS_JSON_HPP

#include "text/json_text.hpp"

#include <zarrbits/convert.hpp>

#include <string>

namespace zarrbits::conversion {

// All options that may affect a byte of the store.
text::json options_json(const convert_options& options);

// Whether two plans mean the same store. Permissions (`keep_going`, `allow_expansion`) may differ: they do not change
// the store.
bool same_options(const text::json& plan, const text::json& other);

// Thrown for a set option that has another value in the plan, and for a plan that is invalid.
struct conflicting_options {
  std::string names;  // "`codec`, `bits`"
};
struct invalid_plan {};

// Sets unset options to the values of `plan`, from options_json(). True if there were some. With `strict`, only permissions may
// be set otherwise. Throws conflicting_options, invalid_plan; zarrbits::error if the options together make no sense.
bool load_options_json(const text::json& plan, convert_options& options, bool strict);

}  // namespace zarrbits::conversion

#endif
