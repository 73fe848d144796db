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
  const verification::node_kind kind = verification::kind_of(folder);  // checks it
  if (kind == verification::node_kind::none)
    throw verification::store_error("there is no \"" + (folder / "zarr.json").name() + "\"");
  const auto object = folder.open("zarr.json");
  if (!object) throw verification::store_error("there is no \"" + (folder / "zarr.json").name() + "\"");
  const std::vector<std::byte> text = verification::read_object(*object, 64U << 20);
  store_node node;
  node.is_array = kind == verification::node_kind::array;
  node.document = conversion::parse_foreign_json({reinterpret_cast<const char*>(text.data()), text.size()});
  if (!node.document.is_object())
    throw verification::store_error("\"" + (folder / "zarr.json").name() + "\" is not a valid JSON object");
  node.attributes = take(node.document, "attributes");
  if (!node.attributes.is_object()) node.attributes = json::object();
  // where `convert` puts its notes depends on the convention
  node.notes = take(node.attributes, conversion::own_key);
  json hidden = take(node.attributes, conversion::hidden_own_key), field = take(node.document, conversion::own_key);
  if (!node.notes.is_object()) node.notes = hidden.is_object() ? std::move(hidden) : std::move(field);
  if (!node.notes.is_object()) node.notes = json::object();
  node.notes.erase("must_understand");
  take_hdmf_notes(node);
  return node;
}

std::vector<std::string> dimension_names(const store_node& array) {
  std::vector<std::string> names;
  const auto found = array.document.find("dimension_names");
  const auto shape = array.document.find("shape");
  if (found == array.document.end() || !found->is_array() || shape == array.document.end()) return names;
  for (const json& name : *found) names.push_back(name.is_string() ? name.get<std::string>() : "");
  const bool named = std::any_of(names.begin(), names.end(), [](const std::string& n) { return !n.empty(); });
  if (!named || names.size() != shape->size()) names.clear();
  return names;
}

}  // namespace zarrbits::exporting
