// SPDX-License-Identifier: BSL-1.0
#include "hdf5/attribute_form.hpp"

#include "text/base64.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace zarrbits::hdf5 {

namespace {

bool is_hex(const std::string& word) { return word.starts_with("0x"); }  // the bits of a NaN

double number_of_word(const std::string& word) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return word == "Infinity" ? infinity : word == "-Infinity" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

// A number, or the word for one.
double real_of(const text::json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.is_string() ? number_of_word(value.get_ref<const std::string&>()) : value.get<double>();
}

std::string float64_base64(double v) {
  const auto bits = std::bit_cast<std::uint64_t>(v);
  std::byte little[8];
  for (unsigned i = 0; i < 8; ++i) little[i] = static_cast<std::byte>(bits >> (8 * i));
  return text::base64(std::span<const std::byte>(little));
}

// The 64-bit integer equal to `value`; null if no such integer exists.
text::json whole_number(const text::json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1U : 0U;
  if (value.is_number_integer()) return value;
  const double v = real_of(value);
  if (!(std::trunc(v) == v)) return nullptr;  // nor is a NaN
  if (v >= 0 && v < 0x1p64) return static_cast<std::uint64_t>(v);
  if (v < 0 && v >= -0x1p63) return static_cast<std::int64_t>(v);
  return nullptr;
}

bool fits(const text::json& integer, const type_description& t) {
  const auto bits = static_cast<unsigned>(8 * t.size - (t.is_signed ? 1 : 0));
  const std::uint64_t max_value = std::numeric_limits<std::uint64_t>::max() >> (64 - bits);
  if (integer.is_number_unsigned()) return integer.get<std::uint64_t>() <= max_value;
  const auto v = integer.get<std::int64_t>();
  return v >= 0 ? static_cast<std::uint64_t>(v) <= max_value : t.is_signed && v >= -static_cast<std::int64_t>(max_value) - 1;
}

bool is_number(const type_description& t) {
  return t.kind == type_class::integer || t.kind == type_class::enumeration || t.kind == type_class::floating ||
         t.kind == type_class::boolean;
}

}  // namespace

text::json fill_for_xarray(const type_description& array, const type_description& type, const text::json& value) {
  const bool complex = type.kind == type_class::complex && value.is_array() && value.size() == 2;
  if (!complex && !is_number(type)) return nullptr;
  switch (array.kind) {
    case type_class::floating: return complex ? text::json(nullptr) : text::json(float64_base64(real_of(value)));
    case type_class::complex:
      return complex ? text::json::array({float64_base64(real_of(value[0])), float64_base64(real_of(value[1]))})
                     : text::json::array({float64_base64(real_of(value)), float64_base64(0)});
    case type_class::integer:
    case type_class::enumeration: {
      text::json integer = complex ? text::json(nullptr) : whole_number(value);
      return integer.is_null() || !fits(integer, array) ? text::json(nullptr) : integer;
    }
    case type_class::boolean: {
      const text::json integer = complex ? text::json(nullptr) : whole_number(value);
      return integer == 0 || integer == 1 ? text::json(integer == 1) : text::json(nullptr);
    }
    default: return nullptr;
  }
}

bool unquote_numbers(const type_description& type, text::json& value) {
  if (type.kind == type_class::array || type.kind == type_class::sequence) return unquote_numbers(type.element(), value);
  bool is_lossless = true;
  if (value.is_array()) {
    for (text::json& part : value) is_lossless = unquote_numbers(type, part) && is_lossless;
  } else if (type.kind == type_class::compound && value.is_object()) {
    for (const type_description& m : type.parts) {
      if (const auto part = value.find(text::escape_name(m.name)); part != value.end())
        is_lossless = unquote_numbers(m, *part) && is_lossless;
    }
  } else if ((type.kind == type_class::floating || type.kind == type_class::complex) && value.is_string()) {
    const auto& word = value.get_ref<const std::string&>();
    is_lossless = !is_hex(word);
    value = number_of_word(word);
  }
  return is_lossless;
}

std::string netcdf_text(std::string_view bytes) {
  std::string text(bytes);
  std::erase(text, '\0');
  return text::replace_invalid_utf8(text);
}

bool holds_object(const text::json& value) {
  return value.is_object() || (value.is_array() && std::any_of(value.begin(), value.end(), holds_object));
}

}  // namespace zarrbits::hdf5
