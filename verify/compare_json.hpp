// SPDX-License-Identifier: BSL-1.0
//
// Is a value of an HDF5 attribute what the JSON of the store says? docs/converter.md has the form of each type.
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

// One element. Where it differs, `d` says where in it ("[1].x") and tells both sides.
likeness compare_json(const source_type& type, const std::byte* value, const nlohmann::json& store, const source_objects& objects,
                      difference& d);

// An array of elements, as nested lists; without dimensions one element.
likeness compare_json(const source_type& type, const std::byte* values, const std::vector<std::uint64_t>& dims,
                      const nlohmann::json& store, const source_objects& objects, difference& d);

// A reference to a part of a dataset, as the JSON that it is in attributes.
likeness compare_region(const std::byte* reference, const nlohmann::json& store, const source_objects& objects, difference& d);

// Text of the source: a string, or {"base64": ...} where its bytes are no UTF-8.
bool is_json_of(std::string_view text, const nlohmann::json& store);

// The text of a string in memory, without its padding.
std::string_view text_of(const source_type& type, const std::byte* value);

// JSON in a sentence.
std::string show_json(const nlohmann::json& j);

}  // namespace zarrbits::verification

#endif
