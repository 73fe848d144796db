// SPDX-License-Identifier: BSL-1.0
#include "digest/canonical_attributes.hpp"

#include "text/reserved_names.hpp"
#include "text/sha256.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace zarrbits::digesting {

namespace {

using sorted_json = nlohmann::json;

// What formats add, hide, or have in another place.
bool is_bookkeeping(const std::string& name) {
  constexpr std::array names = {"_FillValue",
                                "_FillValue_source",
                                "_ARRAY_DIMENSIONS",
                                "DIMENSION_LIST",
                                "REFERENCE_LIST",
                                "DIMENSION_LABELS",
                                "CLASS",
                                "NAME",
                                "_NCProperties",
                                "_nc3_strict",
                                "dtype",
                                text::annotation_key,
                                text::digest_attribute};
  for (const char* const known : names) {
    if (name == known) return true;
  }
  return name.starts_with("_Netcdf4") || name.starts_with("_nc_");
}

// Integers as such, also those of a floating-point type; others by their bits, which every language prints alike. Some
// conventions have texts in place of numbers that are not finite.
sorted_json canonical_number(const text::json& number) {
  constexpr double max_integer = 9007199254740992.0;
  if (!number.is_number_float())
    return number.is_number_unsigned() ? sorted_json(number.get<std::uint64_t>()) : sorted_json(number.get<std::int64_t>());
  const double value = number.get<double>();
  if (std::abs(value) < max_integer && value == std::trunc(value)) return static_cast<std::int64_t>(value);
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(value)));
  return {{"float64", digits}};
}

// Their nesting is limited by whoever has read them.
sorted_json canonical(const text::json& value) {
  if (value.is_number()) return canonical_number(value);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_binary())  // a number that no type holds: the bytes of its text
    return {{"number", std::string(value.get_binary().begin(), value.get_binary().end())}};
  sorted_json result;
  if (value.is_array()) result = sorted_json::array();
  if (value.is_object()) result = sorted_json::object();
  for (const auto& [key, inner] : value.items()) {
    if (value.is_object()) result[key] = canonical(inner);
    else result.push_back(canonical(inner));
  }
  return result;
}

// netCDF has lists alone: no scalars, and no lists of lists.
void flatten(const text::json& value, sorted_json& list) {
  if (!value.is_array()) {
    list.push_back(canonical(value));
    return;
  }
  for (const text::json& inner : value) flatten(inner, list);
}

}  // namespace

std::string digest_attributes(const text::json& attributes) {
  sorted_json counted = sorted_json::object();
  if (!attributes.is_object()) return {};
  for (const auto& [name, value] : attributes.items()) {
    if (is_bookkeeping(name)) continue;
    sorted_json& list = counted[name] = sorted_json::array();
    flatten(value, list);
  }
  if (counted.empty()) return {};
  text::sha256 sum;
  sum.add("zarrbits digest 1 attributes\n" + text::sorted_json_text(counted) + "\n");
  return sum.hex();
}

}  // namespace zarrbits::digesting
