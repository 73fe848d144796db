// SPDX-License-Identifier: BSL-1.0
#include "verify/convention.hpp"

#include "metadata/node.hpp"
#include "text/reserved_names.hpp"

#include <nlohmann/json.hpp>

namespace zarrbits::verification {

using nlohmann::json;

convention convention_of(const json& root, source_tree& tree, bool is_exchanged) {
  convention c;
  const json &note = metadata::note_of(root, "convention"), &attributes = metadata::attributes_of(root);
  c.one_element_is_scalar = note == "netcdf";
  c.nwb = note == "nwb";
  c.hdmf = note.is_null() && attributes.contains("nwb_version") && attributes.contains("neurodata_type");
  c.anndata = note == "anndata";
  c.links_are_objects = note == "netcdf" || note == "anndata" || note == "nexus" || note == "pytables";
  if (note == "netcdf") c.netcdf = std::make_shared<const netcdf_dimensions>(tree);
  // a dimension of a group above, of which another one in between has the name, becomes one of the group
  c.is_part = is_exchanged && note == "netcdf";
  for (const char* key : {"sources", "selection"}) c.is_part = c.is_part || !metadata::note_of(root, key).is_null();
  const bool has_notes = attributes.contains(text::annotation_key);
  const bool may_be_exported = note.is_null() || (is_exchanged && note != "netcdf");
  const bool has_dimensions = may_be_exported && has_netcdf_dimensions(tree);
  c.may_be_plain = may_be_exported && !has_dimensions && (is_exchanged || !has_notes) && has_netcdf_name(tree);
  if (has_dimensions || c.may_be_plain) {
    c.exported = std::make_shared<const netcdf_dimensions>(tree);
    c.one_element_is_scalar = true;
  }
  return c;
}

json plain_reference(const convention& c, const std::string& attribute, const json& value, const std::string& node) {
  if ((c.nwb || c.hdmf) && value.is_object() && value.size() == 1 && value.contains("_REFERENCE")) {
    const json& reference = value["_REFERENCE"];
    if (reference.is_object() && reference.size() == 2 && reference.value("source", json()) == "." && reference.contains("path"))
      return reference["path"];
  }
  // where the schema is, as a path from the root
  if (c.hdmf && node == "/" && attribute == ".specloc" && value.is_string()) return "/" + value.get<std::string>();
  if (c.anndata && attribute == "categories" && value.is_string())
    return node.substr(0, node.rfind('/') + 1) + value.get<std::string>();
  return value;
}

}  // namespace zarrbits::verification
