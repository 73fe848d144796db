// SPDX-License-Identifier: BSL-1.0
//
// Compares a convention's additions to a node with the source.
//
#include "metadata/node.hpp"
#include "text/json_text.hpp"
#include "text/name_escaping.hpp"
#include "text/reserved_names.hpp"
#include "verify/compare_json.hpp"
#include "verify/compare_metadata.hpp"
#include "verify/value_format.hpp"

namespace zarrbits::verification {

using nlohmann::json;

namespace {

// The names of a compound's fields that are object references; "_DTYPE" if the type itself is one.
json reference_fields(hid_t type) {
  json fields = json::array();
  const int count = H5Tget_class(type) == H5T_COMPOUND ? H5Tget_nmembers(type) : 0;
  for (unsigned i = 0; count > 0 && i < static_cast<unsigned>(count); ++i) {
    const hdf5::handle member = checked(H5Tget_member_type(type, i), "cannot read a compound's member");
    const std::unique_ptr<char, decltype(&H5free_memory)> name(H5Tget_member_name(type, i), &H5free_memory);
    if (name && H5Tequal(member.get(), H5T_STD_REF_OBJ) > 0) fields.push_back(name.get());
  }
  return fields;
}

}  // namespace

std::set<std::string> metadata_comparison::nwb_attributes(hid_t object, const node_pair& n) {
  const json& store = n.attributes();
  const bool is_dataset = H5Iget_type(object) == H5I_DATASET;
  const hdf5::handle type(is_dataset ? H5Dget_type(object) : -1);
  const auto compare_attribute = [&](const char* name, const json& expected) {
    if (expected.is_null() && !store.contains(name)) return;
    const bool right = store.contains(name) && store[name] == expected;
    report_finding(n, "attribute", name,
                   right                                        ? verdict::equal
                   : expected.is_null() || store.contains(name) ? verdict::differs
                                                                : verdict::missing,
                   right ? ""
                         : std::string("has a different attribute ") + format_text(name) + " in the store: " +
                               format_json(store.value(name, json())) + " instead of " + format_json(expected));
  };
  const bool array = metadata::is_array(n.node);
  const json fields = array && type ? reference_fields(type.get()) : json::array();
  compare_attribute("_REFERENCE_FIELDS", fields.empty() ? json() : fields);
  compare_attribute("_DTYPE", array && type && H5Tequal(type.get(), H5T_STD_REF_OBJ) > 0 ? json("object_reference") : json());
  for (const json& link : store.value("_LINKS", json::array())) {
    const std::string name = link.is_object() ? link.value("name", "") : "",
                      path = link.is_object() ? link.value("path", "") : "";
    H5O_info_t info;
    const bool link_exists =
        !is_dataset && !name.empty() && link.value("source", "") == "." &&
        H5Oget_info_by_name2(object, text::unescape_name(name).c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0;
    H5Eclear2(H5E_DEFAULT);
    const bool right = link_exists && objects_.address_of(path) == info.addr;
    report_finding(n, "link", name, right ? verdict::equal : verdict::differs,
                   right ? "" : "has a different link " + format_text(name) + " under _LINKS in the store: " + format_json(link));
  }
  return {"_REFERENCE_FIELDS", "_DTYPE", "_LINKS"};
}

std::set<std::string> metadata_comparison::hdmf_attributes(hid_t object, const node_pair& n) {
  if (!metadata::is_array(n.node) || H5Iget_type(object) != H5I_DATASET) return {"_LINKS"};  // links are compared
  const hdf5::handle type(H5Dget_type(object));
  const json dtype = n.attributes().value("_DTYPE", json()), fields = n.attributes().value("_REFERENCE_FIELDS", json::array());
  const bool is_reference = type && H5Tequal(type.get(), H5T_STD_REF_OBJ) > 0;
  const bool right = (dtype == "object_reference") == is_reference && type && fields == reference_fields(type.get());
  if (!right)
    report_finding(n, "attribute", "_DTYPE", verdict::differs,
                   "has other references than _DTYPE and _REFERENCE_FIELDS say in the store: " + format_json(dtype) + ", " +
                       text::sorted_json_text(fields));
  return {"_DTYPE", "_REFERENCE_FIELDS"};
}

void metadata_comparison::dimension(hid_t scale, const node_pair& group, const std::string& name, std::uint64_t length) {
  const std::string escaped_name = text::escape_name(name),
                    key = std::string(text::annotation_key) + ".dimensions." + escaped_name;
  const json dimensions = group.notes().value("dimensions", json::object());
  const json note = dimensions.is_object() ? dimensions.value(escaped_name, json()) : json();
  if (!note.is_object()) return report_finding(group, "note", key, verdict::missing, "has no note " + key + " in the store");
  const json stored = note.value("length", json());
  const bool right = stored == length;
  report_finding(
      group, "note", key, right ? verdict::equal : verdict::differs,
      right ? ""
            : "has a different note " + key + ": source length " + std::to_string(length) + ", store " + format_json(stored));
  const json node = metadata::partial_node(metadata::attributes_or_empty(note));
  attributes(scale, {group.path + (group.path.ends_with("/") ? "" : "/") + escaped_name, group.store_path, node}, false);
}

}  // namespace zarrbits::verification
