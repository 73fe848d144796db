// SPDX-License-Identifier: BSL-1.0
//
// Compares the store's notes on a dataset under "zarrbits": types, limits and names that Zarr has no place for.
//
#include "hdf5/file_bytes.hpp"
#include "hdf5/h5.hpp"
#include "hdf5/open_source.hpp"
#include "metadata/node.hpp"
#include "text/base64.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"
#include "verify/compare_json.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/decode/plain_codec_chain.hpp"
#include "verify/exported_forms.hpp"
#include "verify/netcdf_dimensions.hpp"
#include "verify/source_notes.hpp"
#include "verify/value_format.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

namespace zarrbits::verification {

using nlohmann::json;

namespace {

using expected_notes = std::map<std::string, json>;

std::array<std::uint64_t, verdict_count>& counts_of(verify_result& r, const std::string& kind) {
  if (kind == "group") return r.groups;
  if (kind == "dataset") return r.datasets;
  if (kind == "attribute") return r.attributes;
  if (kind == "dimension names") return r.dimension_names;
  if (kind == "link") return r.links;
  return kind == "named type" ? r.named_types : r.notes;
}

// A type without its outer array types, whose extents are dimensions of the store's array. `dims`: all of them.
hdf5::handle leaf_of(hid_t type, std::vector<std::uint64_t>& dims) {
  hdf5::handle leaf = checked(H5Tcopy(type), "cannot copy a type");
  while (H5Tget_class(leaf.get()) == H5T_ARRAY) {
    const source_type t = describe(leaf.get());
    dims.insert(dims.end(), t.dims.begin(), t.dims.end());
    leaf = checked(H5Tget_super(leaf.get()), "cannot read an array type");
  }
  return leaf;
}

// True if the Zarr type has all of it, or another note does.
bool needs_no_note(const json& type) {
  if (type.is_string()) return true;
  if (type.contains("endian") && !type.contains("stored")) return true;
  return (type["class"] == "enum" && !type.contains("stored")) || (type["class"] == "string" && type["length"] == "variable");
}

bool is_text(const json& type) { return type.is_object() && type.value("class", json()) == "string"; }
bool is_fixed_text(const json& type) { return is_text(type) && type.value("length", json()).is_number(); }
// Whether netCDF has the first of these types in place of the second one.
bool is_netcdf_form(const json& type, const json& original) {
  return is_text(type) ? is_fixed_text(original) : original.is_object() && original.value("class", json()) == type;
}

json limits_note(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0) throw source_error("cannot read the dataspace: " + hdf5_reason());
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank)), max_dims(dims.size());
  if (rank > 0 && H5Sget_simple_extent_dims(space, dims.data(), max_dims.data()) < 0)
    throw source_error("cannot read the dataspace: " + hdf5_reason());
  if (dims == max_dims) return nullptr;
  json list = json::array();
  for (const hsize_t m : max_dims) list.push_back(m == H5S_UNLIMITED ? json() : json(m));
  return list;
}

// `export` makes some types and limits of the array alone: they need no notes. `rank`: of the dataset in the file.
void drop_implied_notes(const zarr::store_folder& folder, const json& notes, const json& references, std::size_t rank,
                        bool netcdf, expected_notes& expected) {
  const auto follows = [&](const char* name, const json& value) {
    if (!notes.contains(name) && expected.contains(name) && expected[name] == value) expected.erase(name);
  };
  try {
    const zarr::zarr_array array(folder, make_plain_decoder);
    std::vector<std::uint64_t> shape = array.shape(), chunk = array.chunk_shape();
    if (netcdf && rank == shape.size() + 1 && array.type().kind == zarr::zarr_kind::terminated) {  // characters have a dimension
      shape.push_back(array.type().size);
      chunk.push_back(array.type().size);
      follows("hdf5_type", {{"class", "string"}, {"length", 1}, {"padding", "null"}});
    }
    follows("hdf5_type", exported_type(array.type(), references));
    if (netcdf) follows("hdf5_type", exported_type(array.type(), references, true));
    follows("maxshape", exported_limits(shape, chunk));
  } catch (const std::runtime_error&) {  // reported when values are compared
  }
}

}  // namespace

std::string refused_field(const zarr::store_folder& node) {
  const auto object = node.is_v2() ? nullptr : node.open("zarr.json");
  if (!object) return "";
  const std::vector<std::byte> text = zarr::read_object(*object, 64U << 20);
  const json document = text::parse_untrusted_json({reinterpret_cast<const char*>(text.data()), text.size()});
  const std::vector<std::string> unknown =
      document.is_object() ? metadata::unknown_members(document) : std::vector<std::string>();
  if (unknown.empty()) return "";
  return "has in its zarr.json the field " + format_text(unknown.front()) +
         " without \"must_understand\": false, so readers refuse it";
}

void add_finding(verify_result& result, finding&& f) {
  f.path = format_name(f.path);
  f.reason = format_name(f.reason);
  f.attribute = format_name(f.attribute);
  ++counts_of(result, f.kind)[static_cast<std::size_t>(f.outcome)];
  if (f.outcome != verdict::equal) result.findings.push_back(std::move(f));
}

void metadata_comparison::report_finding(const node_pair& n, const char* kind, const std::string& name, verdict outcome,
                                         const std::string& reason, const difference& d) {
  finding f;
  f.path = n.path;
  f.store_path = n.store_path;
  f.kind = kind;
  f.attribute = name;
  f.outcome = outcome;
  f.reason = reason;
  f.field = d.field;
  f.source_value = d.source;
  f.store_value = d.store;
  add_finding(result_, std::move(f));
}

void metadata_comparison::report_extra(const node_pair& n, const char* kind, const std::string& name) {
  result_.extras.push_back({n.store_path, kind, format_name(name)});
}

void metadata_comparison::notes(const node_pair& n, const std::map<std::string, json>& expected,
                                const std::set<std::string>& handled) {
  const json& store = n.notes();
  if (n.attributes().contains(text::annotation_key) && !n.attributes()[text::annotation_key].is_object())
    report_extra(n, "attribute", text::annotation_key);
  for (const auto& [name, value] : expected) {
    const std::string key = std::string(text::annotation_key) + "." + name;
    if (!store.contains(name)) {
      report_finding(n, "note", key, verdict::missing, "has no note " + key + " in the store");
    } else if (const std::string reason = type_difference(value, store[name]); !reason.empty()) {
      report_finding(n, "note", key, verdict::differs, "has a different note " + key + ": " + reason);
    } else {
      report_finding(n, "note", key, verdict::equal, "");
    }
  }
  for (const auto& [name, value] : store.items()) {
    if (!expected.contains(name) && !handled.contains(name))
      report_extra(n, "note", std::string(text::annotation_key) + "." + name);
  }
}

void metadata_comparison::user_block(const node_pair& n, const hdf5::opened_source& file, std::uint64_t size) {
  constexpr std::uint64_t max_bytes = 64u << 20;  // as much as convert keeps
  const std::string key = std::string(text::annotation_key) + ".user_block";
  const json note = n.notes().value("user_block", json());
  if (note.is_null()) return report_finding(n, "note", key, verdict::missing, "has no note " + key + " in the store");
  std::string bytes(static_cast<std::size_t>(std::min(size, max_bytes)), '\0');
  try {
    hdf5::file_bytes(file.chunks()).read(0, std::as_writable_bytes(std::span(bytes)));
  } catch (const io::read_error&) {
    return report_finding(n, "note", key, verdict::unreadable, "has a user block that cannot be read from the source");
  }
  const bool text = note.is_object() && note.size() == 1 && note.value("base64", json()).is_string();
  const auto stored = text ? text::decode_base64(note["base64"].get_ref<const std::string&>()) : std::nullopt;
  const bool is_equal = stored && stored->size() == size && std::memcmp(stored->data(), bytes.data(), bytes.size()) == 0;
  if (is_equal) return report_finding(n, "note", key, verdict::equal, "");
  report_finding(n, "note", key, verdict::differs,
                 "has a different note " + key + ": the user block of the source has different bytes");
}

void metadata_comparison::names(const node_pair& n, const std::map<std::string, std::string>& children) {
  const std::string key = std::string(text::annotation_key) + ".names";
  const json store = n.notes().value("names", json::object());
  for (const auto& [stored, name] : children) {
    const bool noted = store.is_object() && store.contains(stored);
    if (noted ? is_json_of(name, store[stored]) : stored == name || zarr::unescape_node_name(stored) == name) continue;
    const std::string description = format_text(stored) + " is " + format_text(name) + " in the source";
    if (noted)
      report_finding(n, "note", key, verdict::differs,
                     "has a different note " + key + ": " + description + ", " + format_json(store[stored]) + " in the store");
    else
      report_finding(n, "note", key, verdict::missing,
                     "has no note " + key + " in the store of a name that is not whole: " + description);
  }
  for (const auto& [stored, name] : store.items()) {
    if (!children.contains(stored)) report_extra(n, "note", key + "." + stored);
  }
}

void metadata_comparison::dataset(hid_t dataset, const node_pair& n, const zarr::store_folder& folder) {
  attributes(dataset, n, true);
  try {
    const hdf5::handle type = checked(H5Dget_type(dataset), "cannot read the datatype");
    const hdf5::handle space = checked(H5Dget_space(dataset), "cannot read the dataspace");
    expected_notes expected;
    std::vector<std::uint64_t> dims;
    const hdf5::handle leaf = leaf_of(type.get(), dims);
    const bool null = H5Sget_simple_extent_type(space.get()) == H5S_NULL;
    // without a value, an array of Zarr shows no text
    if (const json note = type_note(leaf.get()); !needs_no_note(note) || (null && note.is_object() && note["class"] == "string"))
      expected["hdf5_type"] = note;
    // netCDF has strings of variable length alone, and numbers of the types of C
    else if (const json noted = n.notes().value("hdf5_type", json());
             result_.is_exchanged && rules_.netcdf_forms() && is_netcdf_form(note, noted))
      expected["hdf5_type"] = noted;
    if (!dims.empty()) expected["array_type"] = dims;
    if (null) expected["null_dataspace"] = true;
    else if (json limits = limits_note(space.get()); !limits.is_null()) expected["maxshape"] = std::move(limits);
    if (!rules_.netcdf && is_dimension_only(dataset)) expected["dimension_without_variable"] = true;
    const std::vector<std::uint64_t> shape = null ? std::vector<std::uint64_t>() : extent_of(space.get());
    if (metadata::is_array(n.node)) {
      dimension_names(null ? -1 : dataset, shape.size(), n);
      const json declared = rules_.hdmf ? n.attributes() : json::object();
      const json references = declared.value("_DTYPE", json()) == "object_reference"
                                  ? json("object_reference")
                                  : declared.value("_REFERENCE_FIELDS", json());
      drop_implied_notes(folder, n.notes(), references, shape.size(), rules_.exported != nullptr, expected);
    }
    part(type.get(), n, folder, &shape, true, std::move(expected));
  } catch (const source_error& e) {
    report_finding(n, "note", "", verdict::unreadable, std::string("cannot be read from the source: ") + e.what());
  } catch (const zarr::store_error& e) {  // in an inner node; reported when its values are compared
    report_finding(n, "note", "", verdict::differs, std::string("cannot be read from the store: ") + e.what());
  } catch (const std::runtime_error& e) {
    report_finding(n, "note", "", verdict::unchecked, std::string("was not compared: this reader does not support ") + e.what());
  }
}

void metadata_comparison::skipped(hid_t dataset, const node_pair& group, const std::string& name) {
  const std::string escaped_name = text::escape_name(name);
  const json skipped_notes = group.notes().value("skipped", json::object());
  const json note = skipped_notes.is_object() ? skipped_notes.value(escaped_name, json()) : json();
  if (!note.is_object()) return;
  const hdf5::handle type(H5Dget_type(dataset));  // the form of a fill value depends on it
  const bool is_float = type && H5Tget_class(type.get()) == H5T_FLOAT;
  const json node = metadata::partial_node(metadata::attributes_or_empty(note), is_float ? json("float64") : json());
  H5Eclear2(H5E_DEFAULT);
  attributes(dataset, {group.path + (group.path.ends_with("/") ? "" : "/") + escaped_name, group.store_path, node}, true);
}

// Compares the node of a dataset or of one of its members, and the inner nodes. `shape`: that of the elements; null inside of
// sequences, which have none.
void metadata_comparison::part(hid_t type, const node_pair& n, const zarr::store_folder& folder,
                               const std::vector<std::uint64_t>* shape, bool is_whole, std::map<std::string, json> expected) {
  std::vector<std::uint64_t> dims;
  if (shape) dims = *shape;
  const hdf5::handle leaf = leaf_of(type, dims);
  const H5T_class_t kind = H5Tget_class(leaf.get());
  const bool array = metadata::is_array(n.node);
  std::set<std::string> handled = {"attribute_types", "attribute_shapes", "attribute_values"};
  if (n.store_path == "/") handled.merge(std::set<std::string>{"selection", "convention"});
  // that of booleans is reported if any is neither 0 nor 1
  if (kind == H5T_ENUM && !(array && metadata::data_type_of(n.node) == "bool")) expected["enum"] = enum_note(leaf.get());
  if (!is_whole) {
    for (const auto& [key, value] : n.attributes().items()) {
      if (key != text::annotation_key) report_extra(n, "attribute", key);
    }
    if (array) dimension_names(-1, 0, n);
  }
  const auto inner = [&](hid_t inner_type, const zarr::store_folder& child, const std::vector<std::uint64_t>* inner_shape) {
    if (zarr::kind_of(child) == metadata::node_kind::none) return;  // missing; reported when values are compared
    const json node = zarr::read_node(child);
    part(inner_type, {n.path, "/" + child.path(), node}, child, inner_shape, false, {});
  };
  if (!array && kind == H5T_COMPOUND) {
    zarr::child_nodes children(folder, n.node);
    std::map<std::string, std::string> stored;
    const int count = H5Tget_nmembers(leaf.get());
    for (unsigned i = 0; count > 0 && i < static_cast<unsigned>(count); ++i) {
      const hdf5::handle member = checked(H5Tget_member_type(leaf.get(), i), "cannot read a compound's member");
      const std::unique_ptr<char, decltype(&H5free_memory)> name(H5Tget_member_name(leaf.get(), i), &H5free_memory);
      for (const zarr::store_folder& child : children.match(name ? name.get() : "")) {
        stored[child.leaf_name()] = name ? name.get() : "";
        inner(member.get(), child, shape ? &dims : nullptr);
      }
    }
    names(n, stored);
    handled.insert("names");
  } else if (!array && kind == H5T_VLEN) {
    const hdf5::handle base = checked(H5Tget_super(leaf.get()), "cannot read a sequence type");
    hdf5::handle inside = checked(H5Tcopy(base.get()), "cannot copy a type");
    while (H5Tget_class(inside.get()) == H5T_VLEN) inside = checked(H5Tget_super(inside.get()), "cannot read a sequence type");
    inner(inside.get(), folder / "values", nullptr);
    if (shape) expected["shape"] = dims;  // shape of the array of sequences
  }
  notes(n, expected, handled);
}

}  // namespace zarrbits::verification
