// SPDX-License-Identifier: BSL-1.0
//
// JSON of strangers: the one way in for what codecs and data types are given as text.
//
#ifndef ZARRBITS_CORE_JSON_HPP
#define ZARRBITS_CORE_JSON_HPP

#include <zarrbits/error.hpp>

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace zarrbits::detail {

// Lists and objects within each other. Copying, printing and destroying a value go as deep in the stack as it nests.
inline constexpr std::size_t deepest_json = 128;

// Parses `text`. Throws `error` with `code` and a sentence that begins with `what` ("the codec") where it is no JSON, nests
// deeper than deepest_json, or gives a key of an object twice, of which readers take the first, the last, or none.
nlohmann::ordered_json parse_json(std::string_view text, errc code, const std::string& what);

// What came in, short enough for a sentence.
std::string in_quotes(std::string_view text);

}  // namespace zarrbits::detail

#endif
