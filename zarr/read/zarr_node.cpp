// SPDX-License-Identifier: BSL-1.0
//
// Nodes of a store, and the outermost level of their zarr.json.
//
#include "text/base64.hpp"
#include "text/json_text.hpp"
#include "text/memory_estimate.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"
#include "zarr/read/missing_value.hpp"
#include "zarr/read/zarr_json.hpp"
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
  if (!node.contains("attributes") || !node["attributes"].is_object() || node["attributes"].contains(text::annotation_key))
    return;
  json& attributes = node["attributes"];
  if (const auto hidden = attributes.find(text::hidden_annotation_key); hidden != attributes.end()) {
    json notes = std::move(*hidden);
    attributes.erase(hidden);
    attributes[text::annotation_key] = std::move(notes);
  } else if (const auto field = node.find(text::annotation_key); field != node.end() && field->is_object()) {
    field->erase("must_understand");
    attributes[text::annotation_key] = std::move(*field);
    node.erase(field);
  }
}

// What v2_store.cpp says of attributes.
void extract_remarks(text::json& node, std::vector<detail::attribute_remark>& remarks) {
  const auto entry = node.find(text::remarks_key);
  if (entry == node.end()) return;
  for (const text::json& r : entry->value("list", text::json::array())) {
    if (r.is_array() && r.size() == 3 && r[0].is_string() && r[1].is_boolean() && r[2].is_string())
      remarks.push_back({r[0].get<std::string>(), r[1].get<bool>(), r[2].get<std::string>()});
  }
  node.erase(entry);
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
  extract_remarks(j, remarks);
  return j;
}

json read_metadata(const store_folder& folder, bool& exists) {
  std::vector<detail::attribute_remark> ignored;
  json j = read_metadata(folder, ignored);
  exists = !j.is_null();
  if (exists) gather_notes(j);
  return j;
}

template <class Json>
node_kind kind_in(const Json& document) {
  if (document.value("zarr_format", Json()) != 3) throw store_error("\"zarr_format\" is not 3");
  const json type = document.value("node_type", Json());
  if (type == "group") return node_kind::group;
  if (type == "array") return node_kind::array;
  throw store_error("\"node_type\" is " + json_text(type) + ", neither group nor array");
}

bool has_binary(const json& j) { return j.is_binary() || (j.is_structured() && std::any_of(j.begin(), j.end(), has_binary)); }

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

std::string json_text(const json& j) {
  if (has_binary(j)) return text::json_text(j);
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<std::uint64_t> extents(const json& list, const char* key) {
  if (!list.is_array()) throw store_error(std::string("\"") + key + "\" is not a list");
  std::vector<std::uint64_t> out;
  for (const json& n : list) {
    if (!n.is_number_unsigned())
      throw store_error(std::string("\"") + key + "\" holds " + json_text(n) + ", which is not an extent");
    out.push_back(n.get<std::uint64_t>());
  }
  return out;
}

std::string parse_extension(const json& j, json& configuration) {
  configuration = json::object();
  if (j.is_string()) return j.get<std::string>();
  if (!j.is_object() || !j.contains("name") || !j["name"].is_string()) throw store_error(json_text(j) + " has no name");
  if (j.contains("configuration") && j["configuration"].is_object()) configuration = j["configuration"];
  return j["name"].get<std::string>();
}

const json& require_key(const json& j, const char* key) {
  if (!j.contains(key)) throw store_error(std::string("zarr.json has no \"") + key + "\"");
  return j[key];
}

json read_node(const store_folder& folder) {
  bool exists = false;
  json j = read_metadata(folder, exists);
  if (!exists) throw store_error("there is no " + (folder / "zarr.json").name());
  return j;
}

node_kind kind_of(const store_folder& folder) {
  bool exists = false;
  const json j = read_metadata(folder, exists);
  return exists ? kind_in(j) : node_kind::none;
}

std::vector<std::string> dimension_names_in(const text::json& array) {
  const auto shape = array.find("shape");
  const auto names_in = [&](const char* key, const text::json& object) {
    std::vector<std::string> names;
    const auto list = object.is_object() ? object.find(key) : object.end();
    if (shape == array.end() || list == object.end() || !list->is_array() || list->size() != shape->size()) return names;
    for (const text::json& name : *list) names.push_back(name.is_string() ? name.get<std::string>() : "");
    if (std::all_of(names.begin(), names.end(), [](const std::string& name) { return name.empty(); })) names.clear();
    return names;
  };
  std::vector<std::string> names = names_in("dimension_names", array);
  if (const auto attributes = array.find("attributes"); names.empty() && attributes != array.end())
    names = names_in("_ARRAY_DIMENSIONS", *attributes);
  return names;
}

stored_node read_stored_node(const store_folder& folder) {
  stored_node node;
  node.document = read_metadata(folder, node.remarks);
  if (node.document.is_null()) throw store_error("there is no \"" + (folder / "zarr.json").name() + "\"");
  node.kind = kind_in(node.document);
  if (node.kind == node_kind::array) put_missing_value(node.document, node.remarks);
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
    const json note = j.value(json::json_pointer("/attributes/zarrbits/selection"), json::object());
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
  const json::json_pointer names("/attributes/zarrbits/names");
  if (!group.is_object() || !group.contains(names) || !group[names].is_object()) return stored;
  const auto entry = group[names].find(stored);
  if (entry == group[names].end()) return stored;
  if (entry->is_string()) return entry->get<std::string>();
  const json text = entry->is_object() ? entry->value("base64", json()) : json();
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
  const json consolidated = root.value("consolidated_metadata", json());
  if (consolidated.is_null()) return {};
  if (!consolidated.is_object() || !consolidated.contains("metadata") || !consolidated["metadata"].is_object()) return {""};
  std::vector<std::string> out;
  std::set<std::string> listed;
  for (const auto& [path, node] : consolidated["metadata"].items()) {
    listed.insert(path);
    json consolidated_node = node;
    bool is_equal = consolidated_node.is_object();
    if (is_equal) gather_notes(consolidated_node);  // as read_node() does
    try {
      const json actual_node = read_node(group / path);
      for (const char* key : {"zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value",
                              "codecs", "storage_transformers", "dimension_names", "attributes"}) {
        // an empty list of transformers counts as none
        const auto value = [&](const json& j) {
          return j.contains(key) && !(j[key].is_array() && j[key].empty()) ? j[key] : json();
        };
        const json a = value(consolidated_node), b = value(actual_node);
        is_equal = is_equal && (a == b || json_text(a) == json_text(b));  // NaN is not equal to itself
      }
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
      else if (consolidated["metadata"][path].value("node_type", json()) == "group") todo.emplace_back(child, path + "/");
    }
  }
  return out;
}

}  // namespace zarrbits::zarr
