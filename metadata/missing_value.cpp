// SPDX-License-Identifier: BSL-1.0
#include "metadata/missing_value.hpp"

#include "metadata/node.hpp"
#include "text/base64.hpp"
#include "text/reserved_names.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace zarrbits::metadata {

using ordered = text::json;

namespace {

std::string float64_base64(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  std::byte little[8];
  for (unsigned i = 0; i < 8; ++i) little[i] = static_cast<std::byte>(bits >> (8 * i));
  return text::base64(std::span<const std::byte>(little));
}

// A number, or the word for one, as netCDF-C writes it.
std::optional<double> real_of(const ordered& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_binary()) return std::strtod(text::json_text(value).c_str(), nullptr);
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return {};
}

// In base64; null: it is neither a number nor that.
ordered real_form(const ordered& value) {
  if (const auto number = real_of(value)) return float64_base64(*number);
  const auto bytes = value.is_string() ? text::decode_base64(value.get<std::string>()) : std::nullopt;
  return bytes && bytes->size() == 8 ? value : ordered(nullptr);
}

ordered integer_form(const ordered& value, unsigned bits, bool is_signed) {
  const std::uint64_t max_value = std::numeric_limits<std::uint64_t>::max() >> (64 - (is_signed ? bits - 1 : bits));
  if (value.is_number_unsigned()) return value.get<std::uint64_t>() <= max_value ? value : ordered(nullptr);
  if (value.is_number_integer()) {
    const auto v = value.get<std::int64_t>();
    const bool fits =
        v >= 0 ? static_cast<std::uint64_t>(v) <= max_value : is_signed && v >= -static_cast<std::int64_t>(max_value) - 1;
    return fits ? value : ordered(nullptr);
  }
  if (!value.is_number_float()) return nullptr;
  const auto v = value.get<double>();
  if (std::trunc(v) != v) return nullptr;
  if (v >= 0 && v < 0x1p64) return integer_form(static_cast<std::uint64_t>(v), bits, is_signed);
  return v < 0 && v >= -0x1p63 ? integer_form(static_cast<std::int64_t>(v), bits, is_signed) : ordered(nullptr);
}

}  // namespace

ordered missing_value_of(const ordered& data_type, const ordered& fill_value) {
  const std::string name = name_of(data_type);
  const bool complex = name.starts_with("complex");
  const ordered value = fill_value.is_array() && fill_value.size() == 1 ? fill_value[0] : fill_value;
  if (name.starts_with("float")) return real_form(value);
  if (complex && value.is_array() && value.size() == 2) {
    ordered real = real_form(value[0]), imaginary = real_form(value[1]);
    return real.is_null() || imaginary.is_null() ? ordered(nullptr) : ordered::array({std::move(real), std::move(imaginary)});
  }
  if (complex && value.is_number()) return ordered::array({real_form(value), real_form(0)});
  if (name == "bool") return value.is_boolean() ? value : value == 0 || value == 1 ? ordered(value == 1) : ordered(nullptr);
  for (const auto& [word, is_signed] : {std::pair<const char*, bool>{"int", true}, {"uint", false}}) {
    for (const unsigned bits : {8U, 16U, 32U, 64U}) {
      if (name == word + std::to_string(bits)) return integer_form(value, bits, is_signed);
    }
  }
  return (name == "string" || name == "variable_length_bytes") && value.is_string() ? value : ordered(nullptr);
}

void put_missing_value(ordered& array, std::vector<detail::attribute_remark>& remarks) {
  const auto attributes = array.find("attributes");
  if (attributes == array.end() || !attributes->is_object()) return;
  const auto entry = attributes->find("_FillValue");
  if (entry == attributes->end()) return;
  ordered form = missing_value_of(data_type_of(array), *entry);
  if (form == *entry) return;
  if (!form.is_null()) {
    *entry = std::move(form);
    return;
  }
  ordered value = std::move(*entry);
  remarks.push_back(
      {"_FillValue", false, reason_code::changed_form,
       "xarray takes no " + text::json_text(value) + " for missing values of this type; " + "it is in zarrbits' notes"});
  attributes->erase(entry);
  (*attributes)[text::hidden_annotation_key]["attribute_values"]["_FillValue"] = std::move(value);
}

}  // namespace zarrbits::metadata
