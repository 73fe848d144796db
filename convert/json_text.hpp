// SPDX-License-Identifier: BSL-1.0
//
// JSON from text and to text: json's parser and writer are templates, which every file that calls them compiles anew, for a second or two.
//
#ifndef ZARRBITS_CONVERT_JSON_TEXT_HPP
#define ZARRBITS_CONVERT_JSON_TEXT_HPP

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace zarrbits::conversion {

// Text that is no JSON throws nlohmann::json::exception, or, where it may be anything, becomes a value that is_discarded().
nlohmann::ordered_json parse_json(std::string_view text, bool may_be_anything = false);

// Without an indent, on one line. Names in a file may be any bytes; JSON is UTF-8, so what is not becomes U+FFFD.
std::string json_text(const nlohmann::ordered_json& j, int indent = -1);

// The same, but what is not UTF-8 throws nlohmann::json::exception.
std::string strict_json_text(const nlohmann::ordered_json& j, int indent = -1);

}  // namespace zarrbits::conversion

#endif
