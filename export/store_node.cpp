// SPDX-License-Identifier: BSL-1.0
#include "export/store_node.hpp"

#include "export/hdmf_notes.hpp"
#include "metadata/node.hpp"
#include "text/reserved_names.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <algorithm>
#include <utility>

namespace zarrbits::exporting {

namespace {

const text::json nothing = nullptr;

}  // namespace

const text::json& store_node::note(const char* key) const {
  const auto entry = notes.find(key);
  return entry == notes.end() ? nothing : *entry;
}

store_node read_store_node(const zarr::store_folder& folder) { return store_node_of(zarr::read_stored_node(folder)); }

store_node store_node_of(zarr::stored_node stored) {
  store_node node;
  node.is_array = stored.kind == metadata::node_kind::array;
  node.document = std::move(stored.document);
  node.remarks = std::move(stored.remarks);
  node.dimensions = metadata::dimension_names_in(node.document);
  node.attributes = metadata::take_attributes(node.document);
  if (!node.attributes.is_object()) node.attributes = text::json::object();
  if (!node.dimensions.empty()) node.attributes.erase("_ARRAY_DIMENSIONS");  // the same, as xarray has it in Zarr v2
  // where `convert` puts its notes depends on the convention
  node.notes = metadata::take_member(node.attributes, text::annotation_key);
  text::json hidden = metadata::take_member(node.attributes, text::hidden_annotation_key),
             field = metadata::take_annotation(node.document);
  if (!node.notes.is_object()) node.notes = hidden.is_object() ? std::move(hidden) : std::move(field);
  if (!node.notes.is_object()) node.notes = text::json::object();
  take_hdmf_notes(node);
  return node;
}

}  // namespace zarrbits::exporting
