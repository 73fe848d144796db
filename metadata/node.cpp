// SPDX-License-Identifier: BSL-1.0
#include "metadata/node.hpp"

#include "metadata/parse_error.hpp"
#include "text/coded_reason.hpp"
#include "text/coordinates.hpp"
#include "text/reserved_names.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace zarrbits::metadata {

using nlohmann::json;

namespace {

// Members of a node of Zarr v3. The specification does not have consolidated metadata yet.
constexpr std::array known_members = {"zarr_format",        "node_type",  "shape",  "data_type",  "chunk_grid",
                                      "chunk_key_encoding", "fill_value", "codecs", "attributes", "storage_transformers",
                                      "dimension_names"};

bool is_known(const std::string& name) {
  return std::any_of(known_members.begin(), known_members.end(), [&](const char* known) { return name == known; });
}

std::uint64_t number_or_zero(const text::json& n) { return n.is_number_unsigned() ? n.get<std::uint64_t>() : 0; }

// The lengths of the chunks along each dimension; null if absent.
const text::json& lengths_of(const text::json& array, bool& regular) {
  const text::json& configuration = member(chunk_grid_of(array), "configuration");
  const text::json& chunk = member(configuration, "chunk_shape");
  regular = !chunk.is_null();
  return regular ? chunk : member(configuration, "chunk_shapes");
}

std::optional<std::vector<std::uint64_t>> count_chunks(const text::json& shape, const text::json& lengths, bool regular) {
  if (!shape.is_array() || !lengths.is_array() || lengths.size() != shape.size()) return {};
  std::vector<std::uint64_t> counts;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::uint64_t extent = number_or_zero(shape[d]), length = number_or_zero(lengths[d]);
    std::uint64_t n = 0;
    if (length > 0) {
      n = extent / length + (extent % length != 0);
    } else if (!regular && lengths[d].is_array()) {
      for (const text::json& run : lengths[d]) {  // a length, or [length, count]
        const std::uint64_t count = run.is_array() && run.size() == 2 ? number_or_zero(run[1]) : 1;
        if (__builtin_add_overflow(n, count, &n)) return {};
      }
    } else {
      return {};
    }
    counts.push_back(n);
  }
  return counts;
}

}  // namespace

text::json take_member(text::json& object, std::string_view key) {
  const auto entry = object.find(key);
  if (entry == object.end()) return nullptr;
  text::json value = std::move(*entry);
  object.erase(entry);
  return value;
}

template <class Json>
node_kind require_kind(const Json& node) {
  if (!is_v3(node)) throw parse_error("\"zarr_format\" is not 3");
  const node_kind kind = kind_of(node);
  if (kind == node_kind::none)
    throw parse_error("\"node_type\" is " + text::sorted_json_text(member(node, "node_type")) + ", neither group nor array");
  return kind;
}
template node_kind require_kind(const json& node);
template node_kind require_kind(const text::json& node);

bool is_zarr_node(std::string_view text) {
  const text::json node = text::parse_untrusted_json(text);
  return is_v3(node) && kind_of(node) != node_kind::none;
}

std::vector<std::string> dimension_names_in(const text::json& array) {
  const text::json& shape = shape_of(array);
  const auto names_in = [&](const text::json& list) {
    std::vector<std::string> names;
    if (shape.is_null() || !list.is_array() || list.size() != shape.size()) return names;
    for (const text::json& name : list) names.push_back(name.is_string() ? name.get<std::string>() : "");
    if (std::all_of(names.begin(), names.end(), [](const std::string& name) { return name.empty(); })) names.clear();
    return names;
  };
  std::vector<std::string> names = names_in(dimension_names_of(array));
  return names.empty() ? names_in(member(attributes_of(array), "_ARRAY_DIMENSIONS")) : names;
}

std::vector<std::string> referenced_variables(const text::json& array) {
  std::vector<std::string> names = dimension_names_in(array);
  for (const char* attribute : text::coordinate_attributes) {
    for (std::string& name : text::names_in_attribute(text::text_member(attributes_of(array), attribute)))
      names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::uint64_t> longest_chunk(const text::json& array) {
  bool regular = true;
  std::vector<std::uint64_t> chunk;
  const text::json& list = lengths_of(array, regular);
  if (!list.is_array()) return chunk;
  for (const text::json& lengths : list) {
    std::uint64_t longest = number_or_zero(lengths);
    if (!regular && lengths.is_array()) {
      for (const text::json& run : lengths)
        longest = std::max(longest, number_or_zero(run.is_array() && !run.empty() ? run[0] : run));
    }
    chunk.push_back(longest);
  }
  return chunk;
}

bool is_rectilinear(const text::json& array) { return name_of(chunk_grid_of(array)) == "rectilinear"; }

std::optional<std::vector<std::uint64_t>> chunks_along(const text::json& array) {
  bool regular = true;
  const text::json& lengths = lengths_of(array, regular);
  return count_chunks(shape_of(array), lengths, regular);
}

std::optional<std::vector<std::uint64_t>> v2_chunks_along(const text::json& zarray) {
  return count_chunks(shape_of(zarray), member(zarray, "chunks"), true);
}

char v2_separator(const text::json& zarray) { return member(zarray, "dimension_separator") == "/" ? '/' : '.'; }

chunk_key_encoding key_encoding_of(const text::json& array) {
  const auto [name, configuration] = read_named_configuration(member(array, "chunk_key_encoding"));
  const bool v2 = name == "v2";
  const bool is_usual = member(configuration, "separator") != (v2 ? "/" : ".");
  return {v2, v2 == is_usual ? '.' : '/'};
}

std::string missing_member(const text::json& array) {
  for (const char* name : {"shape", "data_type", "chunk_grid", "codecs"}) {
    if (!array.contains(name)) return name;
  }
  return {};
}

std::vector<std::string> unknown_members(const json& node) {
  std::vector<std::string> names;
  for (const auto& [name, value] : node.items()) {
    const bool is_absent = name == "consolidated_metadata" && value.is_null() && is_group(node);
    if (!is_known(name) && !is_absent && member(value, "must_understand") != false) names.push_back(name);
  }
  return names;
}

bool same_node(const json& a, const json& b) {
  return std::all_of(known_members.begin(), known_members.end(), [&](const char* name) {
    // an empty list of transformers counts as none
    const auto value = [&](const json& node) {
      const json& v = member(node, name);
      return v.is_array() && v.empty() ? json() : v;
    };
    const json x = value(a), y = value(b);
    return x == y || text::sorted_json_text(x) == text::sorted_json_text(y);  // NaN is not equal to itself
  });
}

void set_extent(text::json& array, std::size_t dimension, std::uint64_t extent) { array["shape"][dimension] = extent; }

void set_dimension_name(text::json& array, std::size_t dimension, const std::string& name) {
  array["dimension_names"][dimension] = name;
}

void set_dimension_names(json& array, const std::vector<std::string>& names) {
  json& list = array["dimension_names"] = json::array();
  for (const std::string& name : names) list.push_back(name.empty() ? json() : json(name));
}

void set_data_type(text::json& array, text::json data_type) { array["data_type"] = std::move(data_type); }

void set_fill_value(text::json& array, text::json value) { array["fill_value"] = std::move(value); }

void set_chunk_grid(text::json& array, text::json grid) { array["chunk_grid"] = std::move(grid); }

void set_codecs(text::json& array, text::json codecs) { array["codecs"] = std::move(codecs); }

void set_key_encoding(text::json& array, const chunk_key_encoding& keys) { array["chunk_key_encoding"] = to_json(keys); }

void set_all_key_encodings(text::json& node, const chunk_key_encoding& keys) {
  if (is_array(node)) set_key_encoding(node, keys);
  if (!consolidated_nodes_of(node).is_object()) return;
  for (text::json& child : node["consolidated_metadata"]["metadata"]) set_all_key_encodings(child, keys);
}

text::json take_attributes(text::json& node) { return take_member(node, "attributes"); }

template <class Json>
Json take_annotation(Json& node) {
  const auto entry = node.find(text::annotation_key);
  if (entry == node.end()) return nullptr;
  Json notes = std::move(*entry);
  node.erase(entry);
  if (notes.is_object()) notes.erase("must_understand");
  return notes;
}
template json take_annotation(json& node);
template text::json take_annotation(text::json& node);

void set_note(text::json& node, const std::string& key, text::json value) {
  text::json& attributes = mutable_attributes(node);
  if (attributes.contains(text::annotation_key) && attributes[text::annotation_key].is_object())
    attributes[text::annotation_key][key] = std::move(value);
  else if (node.contains(text::annotation_key) && node[text::annotation_key].is_object())
    node[text::annotation_key][key] = std::move(value);
  else attributes[text::hidden_annotation_key][key] = std::move(value);  // in a place that xarray does not show
}

namespace {

// Notes of which nothing is left are removed, too.
template <class Json>
std::string take_digest_from(Json& parent, const char* notes_key) {
  const auto notes = parent.find(notes_key);
  if (notes == parent.end() || !notes->is_object()) return {};
  const auto entry = notes->find(text::digest_note_key);
  if (entry == notes->end() || !entry->is_string()) return {};
  const std::string digest = entry->template get<std::string>();
  if (!digest.starts_with(text::digest_note_prefix)) return {};
  notes->erase(entry);
  if (notes->empty()) parent.erase(notes);
  return digest;
}

}  // namespace

template <class Json>
std::string take_digest_note(Json& node) {
  std::string digest;
  if (!node.is_object()) return digest;
  if (const auto attributes = node.find("attributes"); attributes != node.end() && attributes->is_object()) {
    for (const char* key : {text::annotation_key, text::hidden_annotation_key}) {
      if (std::string noted = take_digest_from(*attributes, key); !noted.empty()) digest = std::move(noted);
    }
  }
  if (std::string noted = take_digest_from(node, text::annotation_key); !noted.empty()) digest = std::move(noted);
  return digest;
}
template std::string take_digest_note(json& node);
template std::string take_digest_note(text::json& node);

void set_remarks(text::json& node, const std::vector<detail::attribute_remark>& remarks) {
  text::json list = text::json::array();
  for (const auto& r : remarks) list.push_back({r.attribute, r.left_out, to_string(r.code), r.reason});
  node[text::remarks_key] = {{"must_understand", false}, {"list", std::move(list)}};
}

std::vector<detail::attribute_remark> take_remarks(text::json& node) {
  std::vector<detail::attribute_remark> remarks;
  const text::json stored = take_member(node, text::remarks_key);
  for (const text::json& r : member(stored, "list")) {
    if (!r.is_array() || r.size() != 4 || !r[0].is_string() || !r[1].is_boolean() || !r[2].is_string() || !r[3].is_string())
      continue;
    if (const auto code = text::parse_reason_code(r[2].get_ref<const std::string&>()))
      remarks.push_back({r[0].get<std::string>(), r[1].get<bool>(), *code, r[3].get<std::string>()});
  }
  return remarks;
}

void set_consolidated(text::json& group, text::json nodes) {
  group["consolidated_metadata"] = {{"kind", "inline"}, {"must_understand", false}, {"metadata", std::move(nodes)}};
}

bool remove_consolidated(text::json& group) { return take_member(group, "consolidated_metadata").is_object(); }

std::string node_text(const text::json& node) { return text::python_json_text(node, 2) + "\n"; }

}  // namespace zarrbits::metadata
