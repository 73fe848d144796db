// SPDX-License-Identifier: BSL-1.0
//
// Untrusted JSON: the only parser for codecs and data types that are given as text.
//
#ifndef ZARRBITS_CORE_JSON_HPP
#define ZARRBITS_CORE_JSON_HPP

#include <zarrbits/error.hpp>
#include <zarrbits/reason_code.hpp>

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::detail {

// Nested lists and objects. To copy, print or destroy a value takes stack in proportion to its nesting.
inline constexpr std::size_t deepest_json = 128;

// Parses `text`. Throws `error` with `code` and a sentence that begins with `subject` ("the codec") if it is not JSON, nests
// deeper than deepest_json, or repeats a key of an object: readers then take the first, the last, or none.
nlohmann::ordered_json parse_json(std::string_view text, errc code, const std::string& subject);

// Like parse_json(), for a zarr.json that others wrote: also takes the bare words NaN, Infinity and -Infinity, which Python
// writes for such numbers, and numbers that neither 64-bit integers nor float64 hold. These are binary values, with the bytes of
// their text: JSON has none, so that nothing takes them for anything else.
ZARRBITS_API nlohmann::ordered_json parse_python_json(std::string_view text, errc code, const std::string& subject);

// A remark on an attribute whose value differs from the text.
struct attribute_remark {
  std::string attribute;
  bool left_out = false;
  reason_code code = reason_code::none;
  std::string reason;  // why, as the end of a sentence
};

// The metadata of a node: the same, but an attribute that Python reads is not an error. Of a key that is given twice the last
// value is kept; an attribute with half of a surrogate pair, which is not a character, is left out. `remarks` says so. If
// `attributes_alone`, the text has nothing else, as .zattrs.
ZARRBITS_API nlohmann::ordered_json parse_node_json(std::string_view text, bool attributes_alone, errc code,
                                                    const std::string& subject, std::vector<attribute_remark>& remarks);

// The input, shortened for a sentence.
std::string in_quotes(std::string_view text);

}  // namespace zarrbits::detail

#endif
