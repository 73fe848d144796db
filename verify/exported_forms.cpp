// SPDX-License-Identifier: BSL-1.0
#include "verify/exported_forms.hpp"

#include "metadata/node.hpp"
#include "text/json_text.hpp"
#include "verify/compare_json.hpp"
#include "verify/reader_view.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace zarrbits::verification {

using nlohmann::json;

namespace {

constexpr std::size_t max_dimensions = 32;  // of HDF5

// The values in lists of lists. False if the lists differ in length: HDF5 has no such values.
bool collect_leaves(const json& value, std::vector<std::size_t>& dims, std::size_t level, std::vector<const json*>& leaves) {
  if (!value.is_array()) {
    leaves.push_back(&value);
    return level == dims.size();
  }
  if (level == max_dimensions) return false;
  if (level == dims.size()) {
    if (!leaves.empty()) return false;
    dims.push_back(value.size());
  }
  if (dims[level] != value.size()) return false;
  return std::all_of(value.begin(), value.end(), [&](const json& v) { return collect_leaves(v, dims, level + 1, leaves); });
}

bool is_text(const json& v) { return v.is_string() || (v.is_object() && v.size() == 1 && v.contains("base64")); }

bool is_variable_text(const json& type) { return type.is_object() && type["class"] == "string" && type["length"] == "variable"; }
bool is_fixed_text(const json& type, std::size_t length) {
  return type.is_object() && type["class"] == "string" && type["length"] == length && type["padding"] == "null";
}

// Without a byte order, which values do not depend on.
json name_of(const json& type) {
  return type.is_object() && type.contains("endian") && !type.contains("stored") ? type["class"] : type;
}

bool has_type_of_array(const std::string& attribute, bool netcdf) {
  static const std::set<std::string> of_netcdf = {"flag_values", "flag_masks", "valid_range",
                                                  "valid_min",   "valid_max",  "missing_value"};
  return attribute == "_FillValue" || (netcdf && of_netcdf.contains(attribute));
}

json with_leaves(const json& value, json (*change)(const json&)) {
  if (!value.is_array()) return change(value);
  json result = json::array();
  for (const json& v : value) result.push_back(with_leaves(v, change));
  return result;
}

bool holds_float(const json& value) {
  return value.is_number_float() || (value.is_array() && std::any_of(value.begin(), value.end(), holds_float));
}

// Whether one of int64, uint64 and float64 has all of these numbers as they are.
bool have_one_type(const std::vector<const json*>& leaves) {
  bool negative = false, large = false, floats = false, exact = true;
  for (const json* v : leaves) {
    floats = floats || v->is_number_float();
    if (!v->is_number_integer()) continue;
    const bool is_large = v->is_number_unsigned() && v->get<std::uint64_t>() > INT64_MAX;
    large = large || is_large;
    negative = negative || (!v->is_number_unsigned() && v->get<std::int64_t>() < 0);
    const auto magnitude = !v->is_number_unsigned() && v->get<std::int64_t>() < 0
                               ? 0 - static_cast<std::uint64_t>(v->get<std::int64_t>())
                               : v->get<std::uint64_t>();
    exact = exact && (magnitude == 0 || (magnitude >> std::countr_zero(magnitude)) >> 53 == 0);
  }
  return floats ? exact : !(negative && large);
}

// Objects, lists of different lengths, lists of mixed types, and of numbers of which no type has all.
bool is_json_only(const json& value) {
  std::vector<std::size_t> dims;
  std::vector<const json*> leaves;
  if (!collect_leaves(value, dims, 0, leaves)) return true;
  const auto all_leaves = [&](bool (*predicate)(const json&)) {
    return std::all_of(leaves.begin(), leaves.end(), [&](const json* v) { return predicate(*v); });
  };
  if (all_leaves([](const json& v) { return v.is_number(); })) return !have_one_type(leaves);
  return !value.is_null() && !all_leaves(is_text) && !all_leaves([](const json& v) { return v.is_boolean(); });
}

}  // namespace

bool is_exported_type(const json& type, const std::string& name, const json& value, const json& array, bool netcdf) {
  if (has_type_of_array(name, netcdf) && (name_of(type) == array || (array == "float16" && type == "float32"))) return true;
  // netCDF's own numbers of dimensions, as netCDF-C writes them
  if ((name == "_Netcdf4Dimid" || name == "_Netcdf4Coordinates") && type == "int32") return true;
  if (value.is_null()) return type == "int8";
  if (is_json_only(value)) return is_variable_text(type);
  std::vector<std::size_t> dims;
  std::vector<const json*> leaves;
  collect_leaves(value, dims, 0, leaves);
  if (leaves.empty()) return type == "float64";
  const json& first = *leaves.front();
  if (first.is_boolean()) return netcdf ? type == "int8" : type == "bool";
  if (is_text(first)) {
    if (!first.is_string()) return is_variable_text(type);
    if (netcdf && dims.empty()) return is_fixed_text(type, std::max<std::size_t>(first.get_ref<const std::string&>().size(), 1));
    std::size_t longest = 0;
    bool nul = false;
    for (const json* v : leaves) {
      const std::string text = v->is_string() ? v->get<std::string>() : "";
      longest = std::max(longest, text.size());
      nul = nul || text.find('\0') != std::string::npos;
    }
    return nul ? is_fixed_text(type, longest) : is_variable_text(type);
  }
  const bool integers = std::all_of(leaves.begin(), leaves.end(), [](const json* v) { return v->is_number_integer(); });
  if (!integers) return type == "float64";
  const bool large = std::any_of(leaves.begin(), leaves.end(),
                                 [](const json* v) { return v->is_number_unsigned() && v->get<std::uint64_t>() > INT64_MAX; });
  return type == (large ? "uint64" : "int64");
}

// Attributes of netCDF have one dimension.
json flat_value(const json& value) {
  std::vector<std::size_t> dims;
  std::vector<const json*> leaves;
  if (!value.is_array() || !collect_leaves(value, dims, 0, leaves) || dims.size() < 2) return value;
  json flat = json::array();
  for (const json* v : leaves) flat.push_back(*v);
  return flat;
}

json exported_value(const attribute_values& a, const std::string& name, const json& stored, bool netcdf) {
  const json value = netcdf && a.dims.size() == 1 ? flat_value(stored) : stored;
  if (a.null || !a.values) return value == "" ? json() : value;
  if (a.type.kind == source_kind::integer && !a.type.is_bool)
    return with_leaves(value, [](const json& v) { return v.is_boolean() ? json(v.get<bool>() ? 1U : 0U) : v; });
  if (a.type.kind == source_kind::floating && (holds_float(value) || has_type_of_array(name, true)))
    return with_leaves(value, [](const json& v) { return v.is_number_integer() ? json(v.get<double>()) : v; });
  if (a.type.kind == source_kind::variable_text && a.dims.size() <= 1 && is_json_only(value)) {
    const std::string text(text_of(a.type, a.values->data()));
    try {
      if (same_json(text::parse_untrusted_json(text), value)) return text;
    } catch (const std::runtime_error&) {  // not JSON
    }
  }
  return value;
}

json exported_attributes(const zarr::zarr_type& array) {
  if (array.kind == zarr::zarr_kind::boolean) return {{"dtype", "bool"}};
  if (array.unit.empty()) return json::object();
  static const std::map<std::string, std::string> units = {{"D", "days"},        {"h", "hours"},         {"m", "minutes"},
                                                           {"s", "seconds"},     {"ms", "milliseconds"}, {"us", "microseconds"},
                                                           {"ns", "nanoseconds"}};
  const auto entry = units.find(array.unit);
  const std::string unit = entry == units.end() ? "" : entry->second;
  if (array.name == "numpy.timedelta64")
    return {{"units", unit}, {"dtype", "timedelta64[" + array.unit + "]"}, {"_FillValue", INT64_MIN}};
  return {{"units", unit + " since 1970-01-01"}, {"calendar", "proleptic_gregorian"}, {"_FillValue", INT64_MIN}};
}

json exported_type(const zarr::zarr_type& array, const json& references, bool netcdf) {
  const json reference = {{"class", "object_reference"}};
  if (references == "object_reference") return reference;
  const auto opaque = [&](const std::string& tag) { return json{{"class", "opaque"}, {"length", array.size}, {"tag", tag}}; };
  switch (array.kind) {
    case zarr::zarr_kind::boolean: return netcdf ? "int8" : "bool";
    case zarr::zarr_kind::raw: return opaque("");
    case zarr::zarr_kind::terminated: return {{"class", "string"}, {"length", array.size}, {"padding", "null"}};
    case zarr::zarr_kind::text32:
    case zarr::zarr_kind::text: return {{"class", "string"}, {"length", "variable"}};
    case zarr::zarr_kind::binary: return {{"class", "sequence"}, {"base", "uint8"}};
    case zarr::zarr_kind::record: {
      json fields = json::array();
      for (const zarr::zarr_field& f : array.fields) {
        const bool refers = std::find(references.begin(), references.end(), json(f.name)) != references.end();
        fields.push_back({{"name", f.name}, {"type", refers ? reference : exported_type(f.type, nullptr, netcdf)}});
        if (netcdf && f.type.kind == zarr::zarr_kind::terminated && f.type.size > 1)
          fields.back()["type"] = {
              {"class", "array"}, {"shape", {f.type.size}}, {"base", {{"class", "string"}, {"length", 1}, {"padding", "null"}}}};
      }
      return {{"class", "compound"}, {"fields", std::move(fields)}};
    }
    case zarr::zarr_kind::signed_integer:
    case zarr::zarr_kind::unsigned_integer:
      if (!array.unit.empty())
        return opaque(std::string("NUMPY:<") + (array.name == "numpy.datetime64" ? "M8[" : "m8[") + array.unit + "]");
      [[fallthrough]];
    default: return netcdf && array.name == "float16" ? "float32" : array.name;
  }
}

json exported_limits(const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& chunk) {
  json limits = json::array();
  bool is_extended = false;
  for (std::size_t d = 0; d < std::min(shape.size(), chunk.size()); ++d) {
    limits.push_back(std::max(shape[d], chunk[d]));
    is_extended = is_extended || chunk[d] > shape[d];
  }
  return is_extended ? limits : json();
}

json with_dimension_names(json array) {
  if (!array.is_object() || !metadata::dimension_names_of(array).is_null()) return array;
  const std::vector<std::string> names = metadata::dimension_names_in(array);
  if (names.empty()) return array;
  metadata::set_dimension_names(array, names);
  return array;
}

std::string exported_dimension(const std::string& array, std::size_t d) {
  return array.substr(array.rfind('/') + 1) + "_dim_" + std::to_string(d);
}

bool is_exported_dimension(const std::string& exported_name, const std::string& name, std::uint64_t length) {
  if (!exported_name.starts_with(name)) return false;
  std::string_view suffix = std::string_view(exported_name).substr(name.size());
  while (suffix.ends_with("_dim")) suffix.remove_suffix(4);  // a group has the name
  while (suffix.ends_with('_')) suffix.remove_suffix(1);
  return suffix.empty() || suffix == "_" + std::to_string(length);
}

stored_dimensions::stored_dimensions(const zarr::store_folder& root) {
  std::vector<std::pair<std::string, zarr::store_folder>> todo{{"/", root}};
  while (!todo.empty()) {
    const auto [group, folder] = todo.back();
    todo.pop_back();
    for (const zarr::store_folder& child : folder.nodes()) {
      const json node = with_dimension_names(zarr::read_node(child));
      if (!metadata::is_array(node)) {
        todo.emplace_back("/" + child.path(), child);
        continue;
      }
      const json names = metadata::dimension_names_of(node), shape = metadata::shape_of(node);
      for (std::size_t d = 0; shape.is_array() && d < shape.size(); ++d) {
        if (!shape[d].is_number_unsigned()) continue;
        const auto length = shape[d].get<std::uint64_t>();
        if (names.is_array() && d < names.size() && names[d].is_string())
          groups_[{names[d].get<std::string>(), length}].insert(group);
        groups_[{exported_dimension("/" + child.path(), d), length}].insert(group);
      }
      const json characters = metadata::length_bytes(metadata::data_type_of(node));
      if (characters.is_number_unsigned())
        groups_[{"string" + text::sorted_json_text(characters), characters.get<std::uint64_t>()}].insert(group);
    }
  }
}

bool stored_dimensions::contains(const std::string& group, const std::string& name, std::uint64_t length) const {
  const std::string prefix = group == "/" ? group : group + "/";
  return std::any_of(groups_.begin(), groups_.end(), [&](const auto& entry) {
    const auto& [dimension, groups] = entry;
    return dimension.second == length && is_exported_dimension(name, dimension.first, length) &&
           std::any_of(groups.begin(), groups.end(), [&](const std::string& g) { return g == group || g.starts_with(prefix); });
  });
}

}  // namespace zarrbits::verification
