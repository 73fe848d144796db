// SPDX-License-Identifier: BSL-1.0
#include "export/store_node.hpp"

#include "export/hdmf_notes.hpp"
#include "text/reserved_names.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <algorithm>
#include <utility>

namespace zarrbits::exporting {

namespace {

const json nothing = nullptr;

json take(json& from, const std::string& key) {
  const auto found = from.find(key);
  if (found == from.end()) return nullptr;
  json value = std::move(*found);
  from.erase(found);
  return value;
}

}  // namespace

const json& store_node::note(const char* key) const {
  const auto found = notes.find(key);
  return found == notes.end() ? nothing : *found;
}

store_node read_store_node(const verification::store_folder& folder) {
  verification::stored_node stored = verification::read_stored_node(folder);
  store_node node;
  node.is_array = stored.kind == verification::node_kind::array;
  node.document = std::move(stored.document);
  node.remarks = std::move(stored.remarks);
  node.dimensions = verification::dimension_names_in(node.document);
  node.attributes = take(node.document, "attributes");
  if (!node.attributes.is_object()) node.attributes = json::object();
  if (!node.dimensions.empty()) node.attributes.erase("_ARRAY_DIMENSIONS");  // the same, as xarray has it in Zarr v2
  // where `convert` puts its notes depends on the convention
  node.notes = take(node.attributes, conversion::own_key);
  json hidden = take(node.attributes, conversion::hidden_own_key), field = take(node.document, conversion::own_key);
  if (!node.notes.is_object()) node.notes = hidden.is_object() ? std::move(hidden) : std::move(field);
  if (!node.notes.is_object()) node.notes = json::object();
  node.notes.erase("must_understand");
  take_hdmf_notes(node);
  return node;
}

}  // namespace zarrbits::exporting
