// SPDX-License-Identifier: BSL-1.0
#include "hdf5/h5.hpp"
#include "text/reserved_names.hpp"
#include "text/shown.hpp"
#include "verify/blocks.hpp"
#include "verify/compare_json.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/exported_forms.hpp"
#include "verify/seen_attributes.hpp"
#include "verify/source_notes.hpp"
#include "verify/value_text.hpp"
#include "zarr/read/zarr_json.hpp"

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

// Internal attributes of HDF5 and netCDF. Dimension names and data types keep what matters of them.
bool is_bookkeeping(const std::string& name, bool scale) {
  static const std::set<std::string> always = {"DIMENSION_LIST", "REFERENCE_LIST",      "DIMENSION_LABELS", "_NCProperties",
                                               "_Netcdf4Dimid",  "_Netcdf4Coordinates", "_nc3_strict"};
  return always.contains(name) || (scale && (name == "CLASS" || name == "NAME"));
}

std::string in_quotes(const std::string& name) { return show_text(text::shown(name)); }

// The plain form of an attribute that the notes have, because readers see a different one; else null.
const json* noted_value(const node_pair& n, const std::string& key) {
  const auto all = n.notes().find("attribute_values");
  if (all == n.notes().end() || !all->is_object()) return nullptr;
  const auto found = all->find(key);
  return found == all->end() ? nullptr : &*found;
}

// True for an attribute of a dataset by which netCDF says what the type of the array says.
bool follows_from_type(hid_t dataset, const node_pair& n, const std::string& name) {
  try {
    const json all = exported_attributes(zarr::parse_type(n.node.value("data_type", json())));
    if (!all.contains(name)) return false;
    const attribute_values a = read_attribute(dataset, name);
    if (a.null || product(a.dims) != 1) return false;
    if (all[name].is_string()) return is_json_of(text_of(a.type, a.values->data()), all[name]);
    return a.type.kind == source_kind::integer && a.type.size == 8 &&
           load_source_signed(a.type, a.values->data()) == all[name].get<std::int64_t>();
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

}  // namespace

std::vector<std::uint64_t> extent_of(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> dims(static_cast<std::size_t>(std::max(rank, 0)));
  if (rank < 0 || (rank > 0 && H5Sget_simple_extent_dims(space, dims.data(), nullptr) < 0))
    throw source_error("cannot read the dataspace: " + hdf5_reason());
  return {dims.begin(), dims.end()};
}

const json& node_pair::attributes() const {
  static const json none = json::object();
  const auto found = node.find("attributes");
  return found != node.end() && found->is_object() ? *found : none;
}

const json& node_pair::notes() const {
  static const json none = json::object();
  const auto found = attributes().find(text::own_key);
  return found != attributes().end() && found->is_object() ? *found : none;
}

attribute_values read_attribute(hid_t object, const std::string& name) {
  const handle id = checked(H5Aopen(object, name.c_str(), H5P_DEFAULT), "cannot open the attribute");
  const handle space = checked(H5Aget_space(id.get()), "cannot read the dataspace");
  attribute_values a;
  a.file_type = checked(H5Aget_type(id.get()), "cannot read the datatype");
  a.type = describe(a.file_type.get());
  if (a.type.kind == source_kind::unsupported || a.type.size == 0) throw zarr::not_supported(a.type.name);
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

bool has_bookkeeping_alone(hid_t scale) {
  std::vector<std::string> names;
  hsize_t position = 0;
  return H5Aiterate2(scale, H5_INDEX_NAME, H5_ITER_INC, &position, add_name, &names) >= 0 &&
         std::all_of(names.begin(), names.end(), [](const std::string& name) { return is_bookkeeping(name, true); });
}

namespace {

bool says_packing(const std::string& name) {
  static const std::set<std::string> names = {"scale_factor", "add_offset", "_FillValue", "missing_value",
                                              "valid_min",    "valid_max",  "valid_range"};
  return names.contains(name);
}

}  // namespace

void metadata_comparison::attributes(hid_t object, const node_pair& n, bool is_dataset) {
  std::vector<std::string> names;
  hsize_t position = 0;
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &position, add_name, &names) < 0)
    tell(n, "attribute", "", verdict::unreadable, "has attributes that cannot all be listed: " + hdf5_reason());
  std::sort(names.begin(), names.end());
  bool scale = false;
  try {
    scale = is_dimension_scale(object);
  } catch (const std::runtime_error&) {  // the attribute itself is compared below
  }
  const json& store = n.attributes();
  const json noted = n.notes().value("attribute_values", json::object());
  std::set<std::string> taken = {text::own_key};
  if (rules_.netcdf && rules_.is_part) taken.insert({"_Netcdf4Dimid", "_Netcdf4Coordinates"});
  for (const std::string& name : names) {
    std::string key = text::shown(name);
    const bool none = !store.contains(key) && !noted.contains(key);
    if (none && (is_bookkeeping(name, scale) || (unpacked_.contains(n.store_path) && says_packing(name)))) continue;
    if (none && rules_.exported && is_dataset && follows_from_type(object, n, name)) continue;
    if (rules_.netcdf && rules_.is_part && name.starts_with("_Netcdf4")) continue;
    while (taken.contains(key)) key += "_";
    attribute(object, n, name, key, is_dataset);
    taken.insert(key);
    if (name == "_FillValue" && is_dataset && has_source_form(object, store)) taken.insert(source_form);
  }
  if (rules_.nwb) taken.merge(nwb_attributes(object, n));
  if (rules_.hdmf) taken.merge(hdmf_attributes(object, n));
  for (const auto& [key, value] : store.items()) {
    if (!taken.contains(key)) tell_extra(n, "attribute", key);
  }
  for (const auto& [key, value] : noted.items()) {
    if (!taken.contains(key)) tell_extra(n, "note", std::string(text::own_key) + ".attribute_values." + key);
  }
  const json types = n.notes().value("attribute_types", json::object());
  for (const auto& [key, type] : types.items()) {
    if (!store.contains(key) && !noted.contains(key))
      tell_extra(n, "note", std::string(text::own_key) + ".attribute_types." + key);
  }
}

void metadata_comparison::attribute(hid_t object, const node_pair& n, const std::string& name, const std::string& key,
                                    bool is_dataset) {
  const std::string quoted = in_quotes(name);
  const json& store = n.attributes();
  const bool fill = name == "_FillValue" && is_dataset;
  const auto shown = store.find(key);
  const bool beside = fill && has_source_form(object, store);
  const json* const noted = beside ? &store[source_form] : noted_value(n, key);
  bool missing = shown == store.end() && !noted;
  const auto tell_missing = [&] { tell(n, "attribute", name, verdict::missing, "has no attribute " + quoted + " in the store"); };
  try {
    const attribute_values a = read_attribute(object, name);
    const bool own = is_bookkeeping(name, true) || (is_dataset && (name == "CLASS" || name == "NAME")) ||
                     (is_dataset && name == "dtype" && n.node.value("data_type", json()) == "bool");  // xarray's, of integers
    missing = missing || (shown == store.end() && !is_unseen(a, *noted, fill ? &n.node : nullptr, own, rules_));
    if (missing) return tell_missing();
    difference d;
    const bool reference = a.type.kind == source_kind::reference && a.dims.empty();
    const likeness like = noted  ? compare_noted(a, *noted, shown == store.end() ? nullptr : &*shown, fill ? &n.node : nullptr, d)
                          : fill ? compare_fill(a, *shown, n.node, d)
                          : reference ? compare(a, name, plain_reference(rules_, name, *shown, n.store_path), d)
                                      : compare(a, name, *shown, d);
    if (like == likeness::unknown) throw zarr::not_supported(a.type.name);
    if (like == likeness::equal) {
      const std::string fault = type_fault(a, n, beside ? source_form : key, noted);
      return tell(n, "attribute", name, fault.empty() ? verdict::equal : verdict::differs,
                  fault.empty() ? "" : "has an attribute " + quoted + " of a different type: " + fault);
    }
    tell(n, "attribute", name, verdict::differs,
         "has a different attribute " + quoted + (d.field.empty() ? "" : " at " + d.field) + ": source " + d.source + ", store " +
             d.store,
         d);
  } catch (const zarr::not_supported& e) {
    if (missing) return tell_missing();
    tell(n, "attribute", name, verdict::unchecked,
         "has an attribute " + quoted + " that was not compared: this reader does not support " + e.what());
  } catch (const source_error& e) {
    tell(n, "attribute", name, verdict::unreadable,
         "has an attribute " + quoted + " that cannot be read from the source: " + e.what());
  } catch (const hdf5::failure& e) {
    tell(n, "attribute", name, verdict::unreadable,
         "has an attribute " + quoted + " that cannot be read from the source: " + e.what());
  }
}

std::string metadata_comparison::type_fault(const attribute_values& a, const node_pair& n, const std::string& key,
                                            const json* noted) const {
  const json shapes = n.notes().value("attribute_shapes", json::object());
  if (shapes.is_object() && shapes.contains(key) && shapes[key] != json(a.dims))
    return "source shape " + zarr::json_text(json(a.dims)) + ", store shape " + zarr::json_text(shapes[key]);
  const json types = n.notes().value("attribute_types", json::object());
  const json source = type_note(a.file_type.get());
  if (types.is_object() && types.contains(key)) return type_difference(source, types[key]);
  // xarray's form is base64
  if (!noted && key == "_FillValue" && a.type.kind == source_kind::floating && !a.null && product(a.dims) != 0) return "";
  const json& value = noted ? *noted : n.attributes()[key];
  if (rules_.hdmf && a.type.kind == source_kind::reference && !noted &&
      plain_reference(rules_, key, value, n.store_path) != value)
    return "";
  if (is_exported_type(source, key, value, n.node.value("data_type", json()), rules_.one_element_is_scalar)) return "";
  return type_difference(source, "none that is given");
}

likeness metadata_comparison::compare(const attribute_values& a, const std::string& name, const json& stored,
                                      difference& d) const {
  const json store = exported_value(a, name, stored, rules_.one_element_is_scalar);
  if (a.null) {
    d.source = "no value";
    d.store = show_json(store);
    return store.is_null() ? likeness::equal : likeness::different;
  }
  if (rules_.one_element_is_scalar && product(a.dims) == 1 && !store.is_array())
    return compare_json(a.type, a.values->data(), store, objects_, d);
  return compare_json(a.type, a.values->data(), a.dims, store, objects_, d);
}

// The value that is noted, and what readers see of it; null if they see nothing.
likeness metadata_comparison::compare_noted(const attribute_values& a, const json& noted, const json* shown, const json* array,
                                            difference& d) const {
  if (a.null) {
    d.source = "no value";
    d.store = show_json(noted);
    if (!noted.is_null()) return likeness::different;
  } else if (const likeness like = compare_json(a.type, a.values->data(), a.dims, noted, objects_, d); like != likeness::equal) {
    return like;
  }
  if (!shown) return likeness::equal;
  const bool right = array ? is_fill_for_xarray(a, *shown, *array) : same_json(seen_form(a, noted, rules_), *shown);
  if (right) return likeness::equal;
  d.source = array ? show_json(noted) : show_json(seen_form(a, noted, rules_));
  d.store = show_json(*shown);
  return likeness::different;
}

likeness metadata_comparison::compare_fill(const attribute_values& a, const json& shown, const json& array, difference& d) const {
  const bool tells_all = a.dims.empty() || rules_.one_element_is_scalar;
  return tells_all && is_fill_for_xarray(a, shown, array) ? likeness::equal : compare(a, "_FillValue", shown, d);
}

}  // namespace zarrbits::verification
