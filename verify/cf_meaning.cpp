// SPDX-License-Identifier: BSL-1.0
#include "verify/cf_meaning.hpp"

#include "metadata/node.hpp"
#include "text/base64.hpp"
#include "text/json_text.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/source_values.hpp"
#include "verify/value_format.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace zarrbits::verification {

using nlohmann::json;

namespace {

constexpr long double microsecond = 1;
constexpr long double single = std::numeric_limits<float>::epsilon(), twice = std::numeric_limits<double>::epsilon();

// True if a type in the file is an integer or an IEEE float.
bool is_number(hid_t type, bool& floating, std::size_t& size) {
  const H5T_class_t c = H5Tget_class(type);
  floating = c == H5T_FLOAT;
  size = H5Tget_size(type);
  return floating || (c == H5T_INTEGER && size <= 8);
}

std::optional<long double> number_attribute(hid_t object, const char* name, bool* is_single = nullptr) {
  if (H5Aexists(object, name) <= 0) return {};
  const hdf5::handle attribute(H5Aopen(object, name, H5P_DEFAULT)), type(H5Aget_type(attribute.get())),
      space(H5Aget_space(attribute.get()));
  bool floating = false;
  std::size_t size = 0;
  if (!attribute || !type || !is_number(type.get(), floating, size) || H5Sget_simple_extent_npoints(space.get()) != 1) return {};
  if (is_single) *is_single = *is_single || (floating && size == 4);
  if (floating) {
    long double value = 0;
    check(H5Aread(attribute.get(), H5T_NATIVE_LDOUBLE, &value), "cannot read an attribute");
    return value;
  }
  if (H5Tget_sign(type.get()) == H5T_SGN_NONE) {
    std::uint64_t value = 0;
    check(H5Aread(attribute.get(), H5T_NATIVE_UINT64, &value), "cannot read an attribute");
    return static_cast<long double>(value);
  }
  std::int64_t value = 0;
  check(H5Aread(attribute.get(), H5T_NATIVE_INT64, &value), "cannot read an attribute");
  return value;
}

std::string text_of(hid_t object, const char* name) {
  const std::vector<std::string> text = text_attribute(object, name);
  return text.size() == 1 ? text[0] : "";
}

void set_units(cf_meaning& m, const std::string& own_units, const std::string& own_calendar, const inherited_units& lent) {
  const std::string& units = own_units.empty() ? lent.units : own_units;
  const std::string& calendar = own_calendar.empty() ? lent.calendar : own_calendar;
  m.units = units;
  m.epoch = time_scale_of(units, calendar);
  if (!m.epoch) return;
  m.calendar = calendar_of(calendar);
  m.units += " " + m.calendar;
}

std::optional<long double> number_in(const json& attributes, const char* name) {
  const auto attribute = attributes.find(name);
  if (attribute == attributes.end()) return {};
  const json& value = attribute->is_array() && attribute->size() == 1 ? (*attribute)[0] : *attribute;
  if (value.is_number_unsigned()) return static_cast<long double>(value.get<std::uint64_t>());
  if (value.is_number_integer()) return static_cast<long double>(value.get<std::int64_t>());
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return {};
  const std::string& text = value.get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<long double>::quiet_NaN();
  const auto bytes = text::decode_base64(text);  // xarray's form of a float, for "_FillValue"
  if (!bytes || bytes->size() != sizeof(double)) return {};
  std::uint64_t bits = 0;
  for (std::size_t i = sizeof bits; i-- > 0;) bits = bits << 8 | std::to_integer<std::uint64_t>((*bytes)[i]);
  return std::bit_cast<double>(bits);
}

}  // namespace

bool cf_meaning::operator==(const cf_meaning& other) const {
  const auto equal_or_nan = [](long double a, long double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  return equal_or_nan(scale, other.scale) && equal_or_nan(offset, other.offset) &&
         std::equal(missing.begin(), missing.end(), other.missing.begin(), other.missing.end(), equal_or_nan) &&
         units == other.units && exact == other.exact && precision == other.precision;
}

std::optional<cf_meaning> meaning_in_source(hid_t dataset, const inherited_units& lent) {
  const hdf5::handle type = checked(H5Dget_type(dataset), "cannot read the datatype");
  bool floating = false;
  std::size_t size = 0;
  if (is_number(type.get(), floating, size) && floating && size != 4 && size != 8) return {};
  return meaning_of_numbers(dataset, lent);
}

std::optional<cf_meaning> meaning_of_numbers(hid_t dataset, const inherited_units& lent) {
  const hdf5::handle type = checked(H5Dget_type(dataset), "cannot read the datatype");
  bool floating = false, is_single = false;
  std::size_t size = 0;
  if (!is_number(type.get(), floating, size)) return {};
  cf_meaning m;
  if (!floating && text_of(dataset, "_Unsigned") == (H5Tget_sign(type.get()) == H5T_SGN_NONE ? "false" : "true"))
    m.wrap = std::ldexp(1.0L, static_cast<int>(8 * size));
  const auto scale = number_attribute(dataset, "scale_factor", &is_single),
             offset = number_attribute(dataset, "add_offset", &is_single);
  m.scale = scale.value_or(1);
  m.offset = offset.value_or(0);
  m.exact = !floating && !scale && !offset;
  m.precision = m.exact ? 0 : (floating && size == 4) || is_single ? single : twice;
  for (const char* name : {"_FillValue", "missing_value"}) {
    if (const auto value = number_attribute(dataset, name)) m.missing.push_back(*value);
  }
  set_units(m, text_of(dataset, "units"), text_of(dataset, "calendar"), lent);
  return m;
}

std::optional<cf_meaning> meaning_in_store(const json& node, const zarr::zarr_array& array, const inherited_units& lent) {
  const zarr::zarr_type& t = array.type();
  const bool floating = t.name == "float32" || t.name == "float64";
  const bool integer = t.name.starts_with("int") || t.name.starts_with("uint");
  if ((!floating && !integer) || t.size == 0 || t.size > 8) return {};
  cf_meaning m;
  const json attributes = metadata::attributes_or_empty(node);
  const auto scale = number_in(attributes, "scale_factor"), offset = number_in(attributes, "add_offset");
  m.scale = scale.value_or(1);
  m.offset = offset.value_or(0);
  m.exact = !floating && !scale && !offset;
  m.precision = m.exact ? 0 : t.name == "float32" ? single : twice;
  if (attributes.contains("_FillValue"))
    m.missing.push_back(number_in(attributes, "_FillValue").value_or(store_number(t, array.fill().data.data())));
  if (const auto value = number_in(attributes, "missing_value")) m.missing.push_back(*value);
  set_units(m, text::text_member(attributes, "units"), text::text_member(attributes, "calendar"), lent);
  return m;
}

long double store_number(const zarr::zarr_type& t, const std::byte* p) {
  if (t.name.starts_with("float")) return *float_value(t.name, p);
  if (t.name.starts_with("uint")) return static_cast<long double>(load(p, t.size));
  return static_cast<long double>(load_signed(p, t.size));
}

std::optional<long double> instant(const cf_meaning& m, long double stored) {
  if (std::isnan(stored) || std::find(m.missing.begin(), m.missing.end(), stored) != m.missing.end()) return {};
  const long double number = stored < 0 ? stored + m.wrap : m.wrap > 0 && stored >= m.wrap / 2 ? stored - m.wrap : stored;
  const long double value = number * m.scale + m.offset;
  return m.epoch ? value * static_cast<long double>(m.epoch->unit) + static_cast<long double>(m.epoch->start) : value;
}

const std::set<std::string>& attributes_of_packed_numbers() {
  static const std::set<std::string> names = {"scale_factor", "add_offset", "_FillValue", "missing_value",
                                              "valid_min",    "valid_max",  "valid_range"};
  return names;
}

bool same_value(const cf_meaning& source_meaning, long double source, const cf_meaning& store_meaning, long double store) {
  const auto is_missing = [](const cf_meaning& m, long double v) {
    return std::isnan(v) || std::find(m.missing.begin(), m.missing.end(), v) != m.missing.end();
  };
  if (is_missing(source_meaning, source) || is_missing(store_meaning, store))
    return is_missing(source_meaning, source) && is_missing(store_meaning, store);
  const auto unpacked = [](const cf_meaning& m, long double v) { return v * m.scale + m.offset; };
  const long double x = unpacked(source_meaning, source), y = unpacked(store_meaning, store);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  const long double precision = 4 * std::max(source_meaning.precision, store_meaning.precision);
  if (source_meaning.epoch && store_meaning.epoch) {
    const long double a = x * static_cast<long double>(source_meaning.epoch->unit),
                      b = y * static_cast<long double>(store_meaning.epoch->unit);
    const auto dates_agree = calendars_agree_from(source_meaning.calendar, store_meaning.calendar);
    if (!dates_agree || a + static_cast<long double>(source_meaning.epoch->start) < static_cast<long double>(*dates_agree))
      return false;
    const auto start_difference = static_cast<long double>(store_meaning.epoch->start - source_meaning.epoch->start);
    const auto packed = [](const cf_meaning& m) { return m.scale != 1 || m.offset != 0; };
    const bool rounded = packed(source_meaning) || packed(store_meaning);  // a stored float itself is exactly what it is
    return std::abs(a - start_difference - b) <= (rounded ? precision * std::max(std::abs(a), std::abs(b)) : microsecond);
  }
  if (source_meaning.units != store_meaning.units) return false;
  return x == y || std::abs(x - y) <= precision * std::max({std::abs(x), std::abs(y), std::abs(source_meaning.offset),
                                                            std::abs(store_meaning.offset)});
}

}  // namespace zarrbits::verification
