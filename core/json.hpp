// SPDX-License-Identifier: BSL-1.0
//
// Untrusted JSON: the only parser for codecs and data types that are given as text.
//
#ifndef ZARRBITS_CORE_JSON_HPP
#define ZARRBITS_CORE_JSON_HPP

#include <zarrbits/error.hpp>

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

namespace zarrbits::detail {

// Nested lists and objects. To copy, print or destroy a value takes stack in proportion to its nesting.
inline constexpr std::size_t deepest_json = 128;

// Parses `text`. Throws `error` with `code` and a sentence that begins with `what` ("the codec") if it is not JSON, nests deeper
// than deepest_json, or repeats a key of an object: readers then take the first, the last, or none.
nlohmann::ordered_json parse_json(std::string_view text, errc code, const std::string& what);

// The same of a zarr.json that others wrote: also takes the bare words NaN, Infinity and -Infinity, which Python writes for such
// numbers.
ZARRBITS_API nlohmann::ordered_json parse_python_json(std::string_view text, errc code, const std::string& what);

// The input, shortened for a sentence.
std::string in_quotes(std::string_view text);

}  // namespace zarrbits::detail

#endif
