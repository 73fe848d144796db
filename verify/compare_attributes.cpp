// SPDX-License-Identifier: BSL-1.0
#include "hdf5/h5.hpp"
#include "metadata/node.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/reserved_names.hpp"
#include "verify/blocks.hpp"
#include "verify/cf_meaning.hpp"
#include "verify/compare_json.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/exported_forms.hpp"
#include "verify/reader_view.hpp"
#include "verify/source_notes.hpp"
#include "verify/value_format.hpp"

#include <algorithm>

namespace zarrbits::verification {

using nlohmann::json;

namespace {

herr_t add_name(hid_t, const char* name, const H5A_info_t*, void* out) {
  try {
    static_cast<std::vector<std::string>*>(out)->push_back(name);
    return 0;
  } catch (...) {
    return -1;  // no exception may cross libhdf5
  }
}

// Internal attributes of HDF5 and netCDF, and ours. Dimension names and data types keep what matters of them.
bool is_bookkeeping(const std::string& name, bool scale) {
  static const std::set<std::string> internal_names = {"DIMENSION_LIST", "REFERENCE_LIST", "DIMENSION_LABELS",
                                                       "_NCProperties",  "_Netcdf4Dimid",  "_Netcdf4Coordinates",
                                                       "_nc3_strict"};
  return internal_names.contains(name) || name == text::digest_attribute || (scale && (name == "CLASS" || name == "NAME"));
}

std::string quote_name(const std::string& name) { return format_text(text::escape_name(name)); }

// The plain form of an attribute that the notes have, because readers see a different one; else null.
const json* noted_value(const node_pair& n, const std::string& key) {
  const auto noted_values = n.notes().find("attribute_values");
  if (noted_values == n.notes().end() || !noted_values->is_object()) return nullptr;
  const auto entry = noted_values->find(key);
  return entry == noted_values->end() ? nullptr : &*entry;
}

// True for an attribute of a dataset by which netCDF says what the type of the array says.
bool follows_from_type(hid_t dataset, const node_pair& n, const std::string& name) {
  try {
    const json implied_attributes = exported_attributes(zarr::parse_type(metadata::data_type_of(n.node)));
    if (!implied_attributes.contains(name)) return false;
    const attribute_values a = read_attribute(dataset, name);
    if (a.null || product(a.dims) != 1) return false;
    if (implied_attributes[name].is_string()) return is_json_of(text_of(a.type, a.values->data()), implied_attributes[name]);
    return a.type.kind == source_kind::integer && a.type.size == 8 &&
           load_source_signed(a.type, a.values->data()) == implied_attributes[name].get<std::int64_t>();
  } catch (const std::runtime_error&) {
    return false;
  }
}

// The attribute with the plain form of "_FillValue", if notes are attributes.
constexpr const char* source_form = "_FillValue_source";

// True if the store has it. If the source itself has an attribute of this name, that one has a different name in the store.
bool has_source_form(hid_t object, const json& store) {
  return store.contains(source_form) && (H5Aexists(object, source_form) <= 0 || store.contains(std::string(source_form) + "_"));
}

// The bytes of such elements are an array of uint8, and no byte of it is a fill value.
bool is_opaque(hid_t dataset) {
  const hdf5::handle type(H5Dget_type(dataset));
  return type && H5Tget_class(type) == H5T_OPAQUE;
}

}  // namespace

std::vector<std::uint64_t> extent_of(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> dims(static_cast<std::size_t>(std::max(rank, 0)));
  if (rank < 0 || (rank > 0 && H5Sget_simple_extent_dims(space, dims.data(), nullptr) < 0))
    throw source_error("cannot read the dataspace: " + hdf5_reason());
  return {dims.begin(), dims.end()};
}

const json& node_pair::attributes() const {
  static const json empty = json::object();
  const json& stored = metadata::attributes_of(node);
  return stored.is_object() ? stored : empty;
}

const json& node_pair::notes() const {
  static const json empty = json::object();
  const auto entry = attributes().find(text::annotation_key);
  return entry != attributes().end() && entry->is_object() ? *entry : empty;
}

attribute_values read_attribute(hid_t object, const std::string& name) {
  const hdf5::handle id = checked(H5Aopen(object, name.c_str(), H5P_DEFAULT), "cannot open the attribute");
  const hdf5::handle space = checked(H5Aget_space(id.get()), "cannot read the dataspace");
  attribute_values a;
  a.file_type = checked(H5Aget_type(id.get()), "cannot read the datatype");
  a.type = describe(a.file_type.get());
  if (a.type.kind == source_kind::unsupported || a.type.size == 0)
    throw zarr::not_supported(reason_code::unsupported_type, a.type.name);
  a.null = H5Sget_simple_extent_type(space.get()) == H5S_NULL;
  if (a.null) return a;
  a.dims = extent_of(space.get());
  a.memory = memory_type(a.type, a.file_type.get());
  auto values = std::make_unique<source_values>(a.type, a.memory.get());
  values->read_attribute(id.get(), a.file_type.get(), product(a.dims));
  a.values = std::move(values);
  return a;
}

std::vector<std::string> text_attribute(hid_t object, const char* name) {
  std::vector<std::string> out;
  if (H5Aexists(object, name) <= 0) return out;
  const attribute_values a = read_attribute(object, name);
  if (a.null || (a.type.kind != source_kind::text && a.type.kind != source_kind::variable_text)) return out;
  for (std::uint64_t i = 0; i < product(a.dims); ++i) out.emplace_back(text_of(a.type, a.values->data() + i * a.type.size));
  return out;
}

bool is_dimension_scale(hid_t object) {
  const std::vector<std::string> text = text_attribute(object, "CLASS");
  return text.size() == 1 && text[0] == "DIMENSION_SCALE";
}

bool has_only_bookkeeping(hid_t scale) {
  std::vector<std::string> names;
  hsize_t position = 0;
  return H5Aiterate2(scale, H5_INDEX_NAME, H5_ITER_INC, &position, add_name, &names) >= 0 &&
         std::all_of(names.begin(), names.end(), [](const std::string& name) { return is_bookkeeping(name, true); });
}

void metadata_comparison::attributes(hid_t object, const node_pair& n, bool is_dataset) {
  std::vector<std::string> names;
  hsize_t position = 0;
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &position, add_name, &names) < 0)
    report_finding(n, "attribute", "", verdict::unreadable, "has attributes that cannot all be listed: " + hdf5_reason());
  std::sort(names.begin(), names.end());
  bool scale = false;
  try {
    scale = is_dimension_scale(object);
  } catch (const std::runtime_error&) {  // the attribute itself is compared below
  }
  const json& store = n.attributes();
  const json noted = n.notes().value("attribute_values", json::object());
  std::set<std::string> used_keys = {text::annotation_key};
  if (rules_.netcdf && rules_.is_part) used_keys.insert({"_Netcdf4Dimid", "_Netcdf4Coordinates"});
  for (const std::string& name : names) {
    std::string key = text::escape_name(name);
    const bool is_absent = !store.contains(key) && !noted.contains(key);
    if (is_absent &&
        (is_bookkeeping(name, scale) || (unpacked_.contains(n.store_path) && attributes_of_packed_numbers().contains(name))))
      continue;
    if (is_absent && rules_.exported && is_dataset && follows_from_type(object, n, name)) continue;
    if (rules_.netcdf && rules_.is_part && name.starts_with("_Netcdf4")) continue;
    while (used_keys.contains(key)) key += "_";
    attribute(object, n, name, key, is_dataset);
    used_keys.insert(key);
    if (name == "_FillValue" && is_dataset && has_source_form(object, store)) used_keys.insert(source_form);
  }
  if (rules_.nwb) used_keys.merge(nwb_attributes(object, n));
  if (rules_.hdmf) used_keys.merge(hdmf_attributes(object, n));
  // xarray's names of the dimensions, which are compared as these
  if (is_dataset && store.value("_ARRAY_DIMENSIONS", json()) == metadata::dimension_names_of(n.node))
    used_keys.insert("_ARRAY_DIMENSIONS");
  for (const auto& [key, value] : store.items()) {
    if (!used_keys.contains(key)) report_extra(n, "attribute", key);
  }
  for (const auto& [key, value] : noted.items()) {
    if (!used_keys.contains(key)) report_extra(n, "note", std::string(text::annotation_key) + ".attribute_values." + key);
  }
  const json types = n.notes().value("attribute_types", json::object());
  for (const auto& [key, type] : types.items()) {
    if (!store.contains(key) && !noted.contains(key))
      report_extra(n, "note", std::string(text::annotation_key) + ".attribute_types." + key);
  }
}

void metadata_comparison::attribute(hid_t object, const node_pair& n, const std::string& name, const std::string& key,
                                    bool is_dataset) {
  const std::string quoted = quote_name(name);
  const json& store = n.attributes();
  const bool fill = name == "_FillValue" && is_dataset;
  const auto stored = store.find(key);
  const bool uses_source_form = fill && has_source_form(object, store);
  const json* const noted = uses_source_form ? &store[source_form] : noted_value(n, key);
  bool missing = stored == store.end() && !noted;
  const auto tell_missing = [&] {
    report_finding(n, "attribute", name, verdict::missing, "has no attribute " + quoted + " in the store");
  };
  try {
    const attribute_values a = read_attribute(object, name);
    const bool is_internal =
        is_bookkeeping(name, true) || (is_dataset && (name == "CLASS" || name == "NAME")) ||
        (is_dataset && name == "dtype" && metadata::data_type_of(n.node) == "bool");  // xarray's, of integers
    if (!missing && stored == store.end()) {
      missing = !(fill && is_opaque(object)) && !is_hidden_from_readers(a, *noted, fill ? &n.node : nullptr, is_internal, rules_);
    }
    if (missing) return tell_missing();
    difference d;
    const bool reference = a.type.kind == source_kind::reference && a.dims.empty();
    const likeness result =
        noted       ? compare_noted(a, *noted, stored == store.end() ? nullptr : &*stored, fill ? &n.node : nullptr, d)
        : fill      ? compare_fill(a, *stored, n.node, d)
        : reference ? compare(a, name, plain_reference(rules_, name, *stored, n.store_path), d)
                    : compare(a, name, *stored, d);
    if (result == likeness::unknown) throw zarr::not_supported(reason_code::unsupported_type, a.type.name);
    if (result == likeness::equal) {
      const std::string fault = type_fault(a, n, uses_source_form ? source_form : key, noted);
      return report_finding(n, "attribute", name, fault.empty() ? verdict::equal : verdict::differs,
                            fault.empty() ? "" : "has an attribute " + quoted + " of a different type: " + fault);
    }
    report_finding(n, "attribute", name, verdict::differs,
                   "has a different attribute " + quoted + (d.field.empty() ? "" : " at " + d.field) + ": source " + d.source +
                       ", store " + d.store,
                   d);
  } catch (const zarr::not_supported& e) {
    if (missing) return tell_missing();
    report_finding(n, "attribute", name, verdict::unchecked,
                   "has an attribute " + quoted + " that was not compared: this reader does not support " + e.what());
  } catch (const source_error& e) {
    report_finding(n, "attribute", name, verdict::unreadable,
                   "has an attribute " + quoted + " that cannot be read from the source: " + e.what());
  } catch (const hdf5::failure& e) {
    report_finding(n, "attribute", name, verdict::unreadable,
                   "has an attribute " + quoted + " that cannot be read from the source: " + e.what());
  }
}

std::string metadata_comparison::type_fault(const attribute_values& a, const node_pair& n, const std::string& key,
                                            const json* noted) const {
  const json shapes = n.notes().value("attribute_shapes", json::object());
  if (shapes.is_object() && shapes.contains(key) && shapes[key] != json(a.dims))
    return "source shape " + text::sorted_json_text(json(a.dims)) + ", store shape " + text::sorted_json_text(shapes[key]);
  const json types = n.notes().value("attribute_types", json::object());
  const json source = type_note(a.file_type.get());
  if (types.is_object() && types.contains(key)) return type_difference(source, types[key]);
  // xarray's form is base64
  if (!noted && key == "_FillValue" && a.type.kind == source_kind::floating && !a.null && product(a.dims) != 0) return "";
  const json& value = noted ? *noted : n.attributes()[key];
  if (rules_.hdmf && a.type.kind == source_kind::reference && !noted &&
      plain_reference(rules_, key, value, n.store_path) != value)
    return "";
  const json array_type = metadata::data_type_of(n.node);
  if (is_exported_type(source, key, value, array_type, rules_.one_element_is_scalar)) return "";
  if (rules_.may_be_plain && is_exported_type(source, key, value, array_type, false)) return "";
  return type_difference(source, "none that is given");
}

likeness metadata_comparison::compare(const attribute_values& a, const std::string& name, const json& stored,
                                      difference& d) const {
  const json store = exported_value(a, name, stored, rules_.one_element_is_scalar);
  if (a.null) {
    d.source = "no value";
    d.store = format_json(store);
    return store.is_null() ? likeness::equal : likeness::different;
  }
  if (rules_.one_element_is_scalar && product(a.dims) == 1 && !store.is_array())
    return compare_json(a.type, a.values->data(), store, objects_, d);
  return compare_json(a.type, a.values->data(), a.dims, store, objects_, d);
}

// The value that is noted, and what readers see of it; null if they see nothing.
likeness metadata_comparison::compare_noted(const attribute_values& a, const json& noted, const json* reader_value,
                                            const json* array, difference& d) const {
  if (a.null) {
    d.source = "no value";
    d.store = format_json(noted);
    if (!noted.is_null()) return likeness::different;
  } else if (const likeness result = compare_json(a.type, a.values->data(), a.dims, noted, objects_, d);
             result != likeness::equal) {
    return result;
  }
  if (!reader_value) return likeness::equal;
  const bool right =
      array ? is_fill_for_xarray(a, *reader_value, *array) : same_json(reader_view(a, noted, rules_), *reader_value);
  if (right) return likeness::equal;
  d.source = array ? format_json(noted) : format_json(reader_view(a, noted, rules_));
  d.store = format_json(*reader_value);
  return likeness::different;
}

likeness metadata_comparison::compare_fill(const attribute_values& a, const json& reader_value, const json& array,
                                           difference& d) const {
  const bool tells_all = a.dims.empty() || rules_.one_element_is_scalar;
  return tells_all && is_fill_for_xarray(a, reader_value, array) ? likeness::equal : compare(a, "_FillValue", reader_value, d);
}

}  // namespace zarrbits::verification
