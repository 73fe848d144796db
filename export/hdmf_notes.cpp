// SPDX-License-Identifier: BSL-1.0
#include "export/hdmf_notes.hpp"

#include "metadata/node.hpp"
#include "text/json_text.hpp"

#include <algorithm>
#include <string>

namespace zarrbits::exporting {

namespace {

const text::json object_reference = {{"class", "object_reference"}};

// {"source": ".", "path": "/a/b"}: "." is the store itself.
bool is_target(const text::json& j) { return !text::text_member(j, "source").empty() && !text::text_member(j, "path").empty(); }

void take_links(store_node& node, const char* key) {
  const auto entry = node.attributes.find(key);
  if (entry == node.attributes.end() || !entry->is_array()) return;
  const auto is_link = [](const text::json& link) { return is_target(link) && !text::text_member(link, "name").empty(); };
  if (!std::all_of(entry->begin(), entry->end(), is_link)) return;
  for (const text::json& link : *entry) {
    text::json& note = node.notes["links"][text::text_member(link, "name")];
    if (!note.is_null()) continue;
    note = {{"kind", "soft"}, {"target", text::text_member(link, "path")}};
    if (text::text_member(link, "source") != ".") note = {{"kind", "store"}, {"target", text::text_member(link, "path")}};
  }
  node.attributes.erase(key);
}

// The type of a struct's field as a note; null if it is none of those that hdmf writes.
text::json field_note(const text::json& type) {
  if (type.is_string()) return type == "string" ? text::json{{"class", "string"}, {"length", "variable"}} : type;
  const std::string name = metadata::name_of(type);
  if (name == "fixed_length_utf32") return {{"class", "string"}, {"length", "variable"}};
  const text::json& length = metadata::length_bytes(type);
  if (name == "null_terminated_bytes" && length.is_number_unsigned())
    return {{"class", "string"}, {"length", length}, {"padding", "null"}};
  return nullptr;
}

// A compound some of whose fields are references. Null if the array is not one.
text::json note_of_struct(const text::json& data_type, const text::json& references) {
  text::json result = text::json::array();
  for (const auto& field : metadata::struct_fields(data_type)) {
    const bool reference = std::find(references.begin(), references.end(), field.name) != references.end();
    text::json note = reference ? object_reference : field_note(field.data_type);
    if (note.is_null() || !field.name.is_string() || field.name == "") return nullptr;
    result.push_back({{"name", field.name}, {"type", std::move(note)}});
  }
  return result.empty() ? text::json() : text::json{{"class", "compound"}, {"fields", std::move(result)}};
}

void take_references(store_node& node) {
  const text::json data_type = metadata::data_type_of(node.document);
  const auto dtype = node.attributes.find("_DTYPE"), fields = node.attributes.find("_REFERENCE_FIELDS");
  text::json note;
  if (dtype != node.attributes.end() && *dtype == "object_reference") note = object_reference;
  else if (fields != node.attributes.end() && fields->is_array()) note = note_of_struct(data_type, *fields);
  if (note.is_null()) return;
  node.attributes.erase("_DTYPE");
  node.attributes.erase("_REFERENCE_FIELDS");
  if (!node.notes.contains("hdf5_type")) node.notes["hdf5_type"] = std::move(note);
}

}  // namespace

bool is_nwb_root(const store_node& node) {
  return !node.is_array && node.attributes.contains("nwb_version") && node.attributes.contains("neurodata_type");
}

void take_hdmf_notes(store_node& node) {
  take_links(node, "_LINKS");
  take_links(node, "zarr_link");  // before hdmf-zarr 0.14
  if (node.is_array) take_references(node);
  // where the schema is: a reference in HDF5
  if (is_nwb_root(node) && !text::text_member(node.attributes, ".specloc").empty()) {
    text::json& type = node.notes["attribute_types"][".specloc"];
    if (type.is_null()) type = object_reference;
  }
}

}  // namespace zarrbits::exporting
