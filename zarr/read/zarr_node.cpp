// SPDX-License-Identifier: BSL-1.0
//
// Nodes of a store, and the outermost level of their zarr.json.
//
#include "metadata/missing_value.hpp"
#include "metadata/node.hpp"
#include "text/base64.hpp"
#include "text/json_text.hpp"
#include "text/memory_estimate.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace zarrbits::zarr {

using nlohmann::json;

namespace {

constexpr std::uint64_t max_metadata_bytes = 64u << 20;

// The converter puts notes where a convention's readers do not show them; this moves them to the attributes.
void gather_notes(json& node) {
  if (!metadata::attributes_of(node).is_object() || metadata::attributes_of(node).contains(text::annotation_key)) return;
  json& attributes = metadata::mutable_attributes(node);
  if (const auto hidden = attributes.find(text::hidden_annotation_key); hidden != attributes.end()) {
    json notes = std::move(*hidden);
    attributes.erase(hidden);
    attributes[text::annotation_key] = std::move(notes);
  } else if (node.contains(text::annotation_key) && node[text::annotation_key].is_object()) {
    attributes[text::annotation_key] = metadata::take_annotation(node);
  }
}

// Null if there is no metadata.
text::json read_metadata(const store_folder& folder, std::vector<detail::attribute_remark>& remarks) {
  const auto bytes = read_metadata_bytes(folder);
  if (!bytes) return nullptr;
  const std::string name = (folder / "zarr.json").name();
  const std::string_view metadata(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  text::json j;
  try {
    j = text::parse_untrusted_node(metadata, name, remarks);
  } catch (const zarrbits::error& e) {
    throw store_error(e.what());
  }
  if (!j.is_object()) throw store_error((folder / "zarr.json").name() + " is not a JSON object");
  metadata::take_digest_note(j);  // only noted_digest() has it: it is true of this store alone
  for (detail::attribute_remark& r : metadata::take_remarks(j)) remarks.push_back(std::move(r));
  return j;
}

json read_metadata(const store_folder& folder, bool& exists) {
  std::vector<detail::attribute_remark> ignored;
  json j = read_metadata(folder, ignored);
  exists = !j.is_null();
  if (exists) gather_notes(j);
  return j;
}

}  // namespace

std::optional<std::vector<std::byte>> read_metadata_bytes(const store_folder& folder) {
  const auto object = folder.open("zarr.json");
  if (!object) return {};
  std::vector<std::byte> bytes = read_object(*object, max_metadata_bytes);
  const std::string reason = text::json_memory_error({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                                     (folder.path().empty() ? 4 : 2) * folder.max_string_bytes);
  if (!reason.empty()) throw store_error("\"" + (folder / "zarr.json").name() + "\" " + reason);
  return bytes;
}

json read_node(const store_folder& folder) {
  bool exists = false;
  json j = read_metadata(folder, exists);
  if (!exists) throw store_error("there is no " + (folder / "zarr.json").name());
  return j;
}

std::string noted_digest(const store_folder& folder) {
  const auto bytes = read_metadata_bytes(folder);
  if (!bytes) return {};
  text::json node = text::parse_untrusted_json({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  return metadata::take_digest_note(node);
}

metadata::node_kind kind_of(const store_folder& folder) {
  bool exists = false;
  const json j = read_metadata(folder, exists);
  return exists ? as_store_errors([&] { return metadata::require_kind(j); }) : metadata::node_kind::none;
}

stored_node read_stored_node(const store_folder& folder) {
  stored_node node;
  node.document = read_metadata(folder, node.remarks);
  if (node.document.is_null()) throw store_error("there is no \"" + (folder / "zarr.json").name() + "\"");
  node.kind = as_store_errors([&] { return metadata::require_kind(node.document); });
  if (node.kind == metadata::node_kind::array) metadata::put_missing_value(node.document, node.remarks);
  return node;
}

store_selection selection_of(const store_folder& store) {
  bool exists = false;
  const json j = read_metadata(store, exists);
  store_selection s;
  const auto texts = [](const json& list) {
    std::vector<std::string> out;
    for (const json& text : list) out.push_back(text.get<std::string>());
    return out;
  };
  try {
    const json note = metadata::note_of(j, "selection").is_null() ? json::object() : metadata::note_of(j, "selection");
    s.object = note.value("object", "");
    s.include = texts(note.value("include", json::array()));
    s.exclude = texts(note.value("exclude", json::array()));
  } catch (const json::exception&) {
    throw store_error("the attribute \"zarrbits\" of the store's root does not describe in a valid form what was selected");
  }
  return s;
}

std::string unescape_node_name(const std::string& name) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '%' && i + 2 < name.size() && digit(name[i + 1]) >= 0 && digit(name[i + 2]) >= 0) {
      out += static_cast<char>(digit(name[i + 1]) * 16 + digit(name[i + 2]));
      i += 2;
    } else {
      out += name[i];
    }
  }
  return out;
}

std::string name_in_source(const json& group, const std::string& stored) {
  const json& names = metadata::note_of(group, "names");
  const auto entry = names.is_object() ? names.find(stored) : names.end();
  if (entry == names.end()) return stored;
  if (entry->is_string()) return entry->get<std::string>();
  const json& text = metadata::member(*entry, "base64");
  const auto bytes = text.is_string() ? text::decode_base64(text.get_ref<const std::string&>()) : std::nullopt;
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : stored;
}

child_nodes::child_nodes(const store_folder& group, const json& node) : nodes_(group.nodes()), matched_(nodes_.size()) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::string stored = nodes_[i].leaf_name(), name = name_in_source(node, stored), unescaped = unescape_node_name(stored);
    by_name_.emplace(name, candidate{i, true});
    if (name != stored) by_name_.emplace(stored, candidate{i, false});
    if (name != unescaped && stored != unescaped) by_name_.emplace(unescaped, candidate{i, false});
  }
}

std::vector<store_folder> child_nodes::match(const std::string& name) {
  std::vector<store_folder> out;
  const auto add = [&](const std::string& key, bool by_notes) {
    if (!out.empty()) return;
    const auto [first, last] = by_name_.equal_range(key);
    for (auto i = first; i != last; ++i) {
      const candidate& c = i->second;
      if (c.by_notes != by_notes || matched_[c.node]) continue;
      matched_[c.node] = true;
      out.push_back(nodes_[c.node]);
    }
  };
  add(name, true);
  add(name, false);
  const std::string stored = text::node_name(name);
  if (stored != name) add(stored, true);
  if (stored != name) add(stored, false);
  return out;
}

std::vector<store_folder> child_nodes::unmatched() const {
  std::vector<store_folder> out;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!matched_[i]) out.push_back(nodes_[i]);
  }
  return out;
}

std::string v2_metadata_key(const store_folder& node) {
  for (const char* name : {".zarray", ".zgroup", ".zmetadata"}) {
    if (node.open(name)) return name;
  }
  return "";
}

std::vector<std::string> differing_consolidated(const store_folder& group) {
  const json root = read_node(group);
  if (metadata::consolidated_metadata_of(root).is_null()) return {};
  const json& consolidated = metadata::consolidated_nodes_of(root);
  if (!consolidated.is_object()) return {""};
  std::vector<std::string> out;
  std::set<std::string> listed;
  for (const auto& [path, node] : consolidated.items()) {
    listed.insert(path);
    json consolidated_node = node;
    bool is_equal = consolidated_node.is_object();
    if (is_equal) {  // as read_node() does
      metadata::take_digest_note(consolidated_node);
      gather_notes(consolidated_node);
    }
    try {
      is_equal = is_equal && metadata::same_node(consolidated_node, read_node(group / path));
    } catch (const store_error&) {
      is_equal = false;
    }
    if (!is_equal) out.push_back(path);
  }
  // readers of consolidated metadata do not see nodes that are missing in it
  std::vector<std::pair<store_folder, std::string>> todo{{group, ""}};
  while (!todo.empty() && out.empty()) {
    const auto [folder, prefix] = todo.back();
    todo.pop_back();
    for (const store_folder& child : folder.nodes()) {
      const std::string path = prefix + child.leaf_name();
      if (!listed.count(path)) out.push_back(path);
      else if (metadata::is_group(consolidated[path])) todo.emplace_back(child, path + "/");
    }
  }
  return out;
}

}  // namespace zarrbits::zarr
