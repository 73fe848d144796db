// SPDX-License-Identifier: BSL-1.0
//
// Compares a value of an HDF5 attribute with the JSON of the store. docs/reference/types.md has the form of each type.
//
#ifndef ZARRBITS_VERIFY_COMPARE_JSON_HPP
#define ZARRBITS_VERIFY_COMPARE_JSON_HPP

#include "verify/compare_values.hpp"
#include "verify/source_objects.hpp"
#include "verify/source_values.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zarrbits::verification {

// Compares one element. If it differs, `d` has the place in it ("[1].x") and the text of both sides.
likeness compare_json(const source_type& type, const std::byte* value, const nlohmann::json& store, const source_objects& objects,
                      difference& d);

// Compares an array of elements with nested lists; without dimensions a single element.
likeness compare_json(const source_type& type, const std::byte* values, const std::vector<std::uint64_t>& dims,
                      const nlohmann::json& store, const source_objects& objects, difference& d);

// Compares a region reference with its JSON in attributes.
likeness compare_region(const std::byte* reference, const nlohmann::json& store, const source_objects& objects, difference& d);

// True if the JSON is this text of the source: a string, or {"base64": ...} if its bytes are not UTF-8.
bool is_json_of(std::string_view text, const nlohmann::json& store);

// A string in memory without its padding.
std::string_view text_of(const source_type& type, const std::byte* value);

// JSON as text for a sentence.
std::string format_json(const nlohmann::json& j);

}  // namespace zarrbits::verification

#endif
