// SPDX-License-Identifier: BSL-1.0
#include "verify/reader_view.hpp"

#include "metadata/node.hpp"
#include "text/base64.hpp"
#include "text/format.hpp"
#include "verify/blocks.hpp"
#include "verify/compare_json.hpp"
#include "verify/value_format.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

namespace zarrbits::verification {

using nlohmann::json;

namespace {

bool same_number(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (std::isnan(a) && std::isnan(b));
}

// The little-endian float64 in base64 by which xarray has fill values.
std::optional<double> float64_of(const json& text) {
  const auto bytes = text.is_string() ? text::decode_base64(text.get_ref<const std::string&>()) : std::nullopt;
  if (!bytes || bytes->size() != 8) return {};
  std::uint64_t bits = 0;
  for (std::size_t i = 8; i-- > 0;) bits = bits << 8 | std::to_integer<std::uint64_t>((*bytes)[i]);
  return std::bit_cast<double>(bits);
}

bool is_complex_of_floats(const source_type& t) {
  return t.kind == source_kind::compound && t.members.size() == 2 && t.members[0].type.kind == source_kind::floating &&
         t.members[1].type.kind == source_kind::floating;
}

std::optional<double> number_of(const source_type& t, const std::byte* p) {
  if (t.kind == source_kind::floating) return static_cast<double>(*float_value("float" + std::to_string(8 * t.size), p));
  if (t.kind != source_kind::integer && t.kind != source_kind::bitfield) return {};
  return t.is_signed ? static_cast<double>(load_source_signed(t, p)) : static_cast<double>(load_source(t, p));
}

// The text that netCDF's users see of a string: libnetcdf gives all bytes of a scalar, and a string of a list up to the first
// NUL.
std::string reader_text(const source_type& t, const std::byte* p, bool scalar) {
  std::string bytes(text_of(t, p));
  if (scalar && t.kind == source_kind::text) bytes.assign(reinterpret_cast<const char*>(p), t.size);
  else bytes = bytes.substr(0, bytes.find('\0'));
  std::erase(bytes, '\0');
  return text::replace_invalid_utf8(bytes);
}

bool is_text(const source_type& t) { return t.kind == source_kind::text || t.kind == source_kind::variable_text; }

bool holds_object(const json& value) {
  return value.is_object() || (value.is_array() && std::any_of(value.begin(), value.end(), holds_object));
}

// The extremes of an integer type: "int8" ... "uint64".
bool holds_integer(const std::string& type, double v) {
  const bool is_signed = type.starts_with("int");
  const int bits = std::atoi(type.c_str() + (is_signed ? 3 : 4));
  return std::trunc(v) == v && v >= (is_signed ? -std::ldexp(1.0, bits - 1) : 0.0) &&
         v < std::ldexp(1.0, bits - (is_signed ? 1 : 0));
}

// True if xarray has a fill value of an array of this type that says the attribute's value.
bool has_fill_for_xarray(const attribute_values& a, const json& array) {
  if (a.null || a.dims.size() > 1 || product(a.dims) != 1) return false;
  const json type = metadata::data_type_of(array);
  const std::string name = type.is_string() ? type.get<std::string>() : "";
  const auto value = number_of(a.type, a.values->data());
  if (name.starts_with("float")) return value.has_value();
  if (name.starts_with("complex")) return value.has_value() || is_complex_of_floats(a.type);
  if (!value) return false;
  if (name == "bool") return *value == 0 || *value == 1;
  return (name.starts_with("int") || name.starts_with("uint")) && holds_integer(name, *value);
}

// Words for NaN and infinities as numbers.
json with_numbers(const json& noted) {
  if (noted.is_structured()) {
    json result = noted;
    for (json& item : result) item = with_numbers(item);
    return result;
  }
  // others are paths, of references
  if (!noted.is_string() ||
      (noted != "NaN" && noted != "Infinity" && noted != "-Infinity" && !noted.get_ref<const std::string&>().starts_with("0x")))
    return noted;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return noted == "Infinity" ? infinity : noted == "-Infinity" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

bool same_json(const json& a, const json& b) {
  if (a.is_number_float() && b.is_number_float()) return same_number(a.get<double>(), b.get<double>());
  if (!a.is_structured() || a.type() != b.type() || a.size() != b.size()) return a == b;
  if (a.is_array()) return std::equal(a.begin(), a.end(), b.begin(), same_json);
  return std::all_of(a.items().begin(), a.items().end(),
                     [&](const auto& member) { return b.contains(member.key()) && same_json(member.value(), b[member.key()]); });
}

json reader_view(const attribute_values& a, const json& noted, const convention& rules) {
  if (a.null) return a.type.kind == source_kind::text ? json("") : json::array();  // characters, or a list
  json value = json::array();
  if (is_text(a.type)) {
    for (std::uint64_t i = 0; i < product(a.dims); ++i)
      value.push_back(reader_text(a.type, a.values->data() + i * a.type.size, a.dims.empty()));
    if (a.dims.empty()) return value[0];
  } else {
    value = with_numbers(noted);
  }
  const bool one = rules.one_element_is_scalar && a.dims.size() == 1 && value.is_array() && value.size() == 1;
  return one && !value[0].is_structured() ? json(value[0]) : value;
}

bool is_hidden_from_readers(const attribute_values& a, const json& noted, const json* array, bool bookkeeping,
                            const convention& rules) {
  if (array) return !has_fill_for_xarray(a, *array);
  return rules.netcdf && (bookkeeping || holds_object(reader_view(a, noted, rules)));
}

bool is_fill_for_xarray(const attribute_values& a, const json& reader_value, const json& array) {
  if (a.null || a.dims.size() > 1 || product(a.dims) != 1) return false;
  const json type = metadata::data_type_of(array);
  const std::string name = type.is_string() ? type.get<std::string>() : "";
  const std::byte* const p = a.values->data();
  const auto value = number_of(a.type, p);
  const auto is_part = [](const json& stored, double v) {
    const auto number = float64_of(stored);
    return number && same_number(*number, v);
  };
  if (name.starts_with("float")) return value && is_part(reader_value, *value);
  if (name.starts_with("complex")) {
    if (!reader_value.is_array() || reader_value.size() != 2) return false;
    if (value) return is_part(reader_value[0], *value) && is_part(reader_value[1], 0);
    if (!is_complex_of_floats(a.type)) return false;
    const source_member &re = a.type.members[0], &im = a.type.members[1];
    return is_part(reader_value[0], *number_of(re.type, p + re.offset)) &&
           is_part(reader_value[1], *number_of(im.type, p + im.offset));
  }
  if (!value) return false;
  if (name == "bool") return reader_value.is_boolean() && (reader_value.get<bool>() ? 1 : 0) == *value;
  if (!reader_value.is_number_integer()) return false;
  if (a.type.kind == source_kind::floating) return reader_value.get<double>() == *value;
  return a.type.is_signed && reader_value.is_number_integer() && !reader_value.is_number_unsigned()
             ? reader_value.get<std::int64_t>() == load_source_signed(a.type, p)
             : reader_value.is_number_unsigned() && *value >= 0 && reader_value.get<std::uint64_t>() == load_source(a.type, p);
}

}  // namespace zarrbits::verification
