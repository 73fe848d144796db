// SPDX-License-Identifier: BSL-1.0
//
// The terms of a variable, from the attributes of a dataset or of an array in a store.
//
#include "convert/concat/cf_encoding.hpp"
#include "hdf5/attributes.hpp"
#include "metadata/node.hpp"
#include "text/cf_calendar.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace zarrbits::conversion {

namespace {

number_kind kind_of(hid_t type) {
  const H5T_class_t c = H5Tget_class(type);
  const std::size_t size = H5Tget_size(type);
  const bool integer = c == H5T_INTEGER;
  if ((!integer && c != H5T_FLOAT) || !(size == 4 || size == 8 || (integer && (size == 1 || size == 2)))) return {};
  if (!integer && H5Tget_precision(type) != 8 * size) return {};
  return {integer, !integer || H5Tget_sign(type) == H5T_SGN_2, size};
}

// A number, if an int64 or a double holds it exactly.
std::optional<cf_number> exact_number(hid_t type, const compressors::buffer& stored) {
  cf_number n;
  n.is_integer = H5Tget_class(type) == H5T_INTEGER;
  n.size = n.is_integer ? stored.size() : std::clamp<std::size_t>(stored.size(), 4, 8);
  const hid_t native = n.is_integer ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE;
  compressors::buffer value = stored;
  value.resize(std::max(stored.size(), sizeof(double)));
  hdf5::check(H5Tconvert(type, native, 1, value.data(), nullptr, H5P_DEFAULT), "convert an attribute");
  std::memcpy(n.is_integer ? static_cast<void*>(&n.integer_value) : &n.real, value.data(), sizeof(double));
  const bool nan = !n.is_integer && std::isnan(n.real);
  if (!nan && hdf5::is_conversion_lossy(type, native, stored, 1)) return {};
  return n;
}

// The JSON of an attribute that is not a number here: enough to tell whether it is the same in two files.
text::json plain_json(hid_t attribute, hid_t type, std::size_t count) {
  const H5T_class_t c = H5Tget_class(type);
  if (c != H5T_INTEGER && c != H5T_FLOAT) return "of another type";
  const bool is_signed = c == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_2;
  text::json list = text::json::array();
  const auto read = [&]<class T>(hid_t native, T) {
    std::vector<T> values(count);
    if (count > 0) hdf5::check(H5Aread(attribute, native, values.data()), "read an attribute");
    for (const T v : values) list.push_back(v);
  };
  if (c == H5T_FLOAT) read(H5T_NATIVE_DOUBLE, double());
  else if (is_signed) read(H5T_NATIVE_INT64, std::int64_t());
  else read(H5T_NATIVE_UINT64, std::uint64_t());
  return count == 1 ? list[0] : list;
}

std::optional<cf_number> number_attribute(hid_t dataset, const char* name, cf_encoding& terms) {
  if (H5Aexists(dataset, name) <= 0) return {};
  const hdf5::handle attribute(H5Aopen(dataset, name, H5P_DEFAULT), "open an attribute");
  const hdf5::handle space(H5Aget_space(attribute), "get a dataspace"), type(H5Aget_type(attribute), "get a type");
  const hssize_t points = H5Sget_simple_extent_npoints(space);
  if (points < 0 || points > 4096) {
    terms.unread[name] = "too many";
    return {};
  }
  const H5T_class_t c = H5Tget_class(type);
  if (points == 1 && (c == H5T_INTEGER || c == H5T_FLOAT)) {
    compressors::buffer stored(H5Tget_size(type));
    hdf5::check(H5Aread(attribute, type, stored.data()), "read an attribute");
    if (auto n = exact_number(type, stored)) return n;
  }
  const std::vector<std::string> text = hdf5::text_attribute(dataset, name);
  terms.unread[name] = text::json_text(!text.empty() ? text::json(text.size() == 1 ? text::json(text[0]) : text::json(text))
                                                     : plain_json(attribute, type, static_cast<std::size_t>(points)));
  return {};
}

std::string text_of_attribute(hid_t dataset, const char* name) {
  if (H5Aexists(dataset, name) <= 0) return "";
  const std::vector<std::string> text = hdf5::text_attribute(dataset, name);
  return text.size() == 1 ? text[0] : "";
}

}  // namespace

cf_encoding read_cf_encoding(hid_t dataset, hid_t lender) {
  cf_encoding t;
  const hdf5::handle type(H5Dget_type(dataset), "get the datatype");
  t.kind = kind_of(type);
  if (t.kind.size == 0) return t;
  t.scale = number_attribute(dataset, "scale_factor", t);
  t.offset = number_attribute(dataset, "add_offset", t);
  t.fill = number_attribute(dataset, "_FillValue", t);
  t.missing = number_attribute(dataset, "missing_value", t);
  const auto text = [&](const char* name) {
    return text_of_attribute(H5Aexists(dataset, name) > 0 || lender < 0 ? dataset : lender, name);
  };
  t.units = text("units");
  t.calendar = text::is_time_units(t.units) ? text::calendar_name(text("calendar")) : "";
  t.reinterpreted = text_of_attribute(dataset, "_Unsigned") == (t.kind.is_signed ? "true" : "false");
  return t;
}

cf_encoding stored_cf_encoding(const text::json& node, const append::existing_array& array, const cf_encoding& model,
                               const text::json* lender) {
  if (!array.missing) return {};
  cf_number fill;
  const number_kind kind = kind_of(array.number);
  fill.is_integer = kind.is_integer;
  fill.size = kind.size;
  const auto& [type, bytes] = *array.missing;
  compressors::buffer value = bytes;
  value.resize(sizeof(double));
  hdf5::check(H5Tconvert(type, kind.is_integer ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE, 1, value.data(), nullptr, H5P_DEFAULT),
              "convert a fill value");
  std::memcpy(kind.is_integer ? static_cast<void*>(&fill.integer_value) : &fill.real, value.data(), sizeof(double));
  return stored_cf_encoding(node, kind, fill, model, lender);
}

cf_encoding stored_cf_encoding(const text::json& node, const number_kind& kind, const std::optional<cf_number>& fill,
                               const cf_encoding& model, const text::json* lender) {
  cf_encoding t;
  t.kind = kind;
  const text::json& attributes = metadata::attributes_of(node);
  const auto value_in = [](const text::json& object, const char* name) -> text::json {
    if (!object.contains(name)) return nullptr;
    return object[name].is_array() && object[name].size() == 1 ? object[name][0] : object[name];
  };
  const auto text_in = [&](const text::json& object, const char* name) {
    const text::json value = value_in(object, name);
    return value.is_string() ? value.get<std::string>() : "";
  };
  const auto text = [&](const char* name) {
    return text_in(lender && !attributes.contains(name) ? metadata::attributes_of(*lender) : attributes, name);
  };
  const auto number = [&](const char* name, const std::optional<cf_number>& expected) -> std::optional<cf_number> {
    if (!attributes.contains(name)) return {};
    const text::json v = value_in(attributes, name);
    cf_number n;
    n.is_integer = v.is_number_integer() && (!expected || expected->is_integer);
    n.size = expected ? expected->size : 8;
    const bool nan = v.is_string() && v == "NaN";
    if ((!nan && !v.is_number()) || model.unread.contains(name)) {
      t.unread[name] = text::json_text(v);
      return {};
    }
    if (n.is_integer) n.integer_value = v.get<std::int64_t>();
    else n.real = nan ? std::numeric_limits<double>::quiet_NaN() : v.get<double>();
    return n;
  };
  t.scale = number("scale_factor", model.scale);
  t.offset = number("add_offset", model.offset);
  t.missing = number("missing_value", model.missing);
  if (const auto unread = model.unread.find("_FillValue"); unread != model.unread.end()) {
    // one that readers refuse is not among the attributes
    t.unread[unread->first] =
        attributes.contains("_FillValue") ? text::json_text(value_in(attributes, "_FillValue")) : unread->second;
  } else if (attributes.contains("_FillValue")) {
    t.fill = fill;
  }
  t.units = text("units");
  t.calendar = text::is_time_units(t.units) ? text::calendar_name(text("calendar")) : "";
  t.reinterpreted = text_in(attributes, "_Unsigned") == (t.kind.is_signed ? "true" : "false");
  return t;
}

}  // namespace zarrbits::conversion
