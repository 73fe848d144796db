// SPDX-License-Identifier: BSL-1.0
//
// The fields of a zarr.json that keeps its members in their order, with those that zarrbits does not know. Nothing is checked:
// absent fields are null, or empty. array_metadata.hpp has the types of arrays that are read and written.
//
//   if (is_array(node)) set_extent(node, 0, shape_of(node)[0] + 12);
//   out.put(key, node_text(node));
//
// Functions with the parameter Json take both of the library's types: members in order, and sorted.
//
#ifndef ZARRBITS_METADATA_NODE_HPP
#define ZARRBITS_METADATA_NODE_HPP

#include "metadata/chunk_key_encoding.hpp"
#include "metadata/named_configuration.hpp"
#include "text/json_text.hpp"
#include "text/reserved_names.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::metadata {

enum class node_kind { none, group, array };

template <class Json>
node_kind kind_of(const Json& node) {
  const Json& type = member(node, "node_type");
  return type == "array" ? node_kind::array : type == "group" ? node_kind::group : node_kind::none;
}
template <class Json>
bool is_array(const Json& node) {
  return kind_of(node) == node_kind::array;
}
template <class Json>
bool is_group(const Json& node) {
  return kind_of(node) == node_kind::group;
}
template <class Json>
bool is_v3(const Json& node) {
  return member(node, "zarr_format") == 3;
}
// Throws parse_error if it is not a node of Zarr v3.
template <class Json>
node_kind require_kind(const Json& node);
// True if the text is a node of Zarr v3: --overwrite may remove it.
bool is_zarr_node(std::string_view text);

// Null if absent.
template <class Json>
const Json& shape_of(const Json& node) {
  return member(node, "shape");
}
template <class Json>
const Json& data_type_of(const Json& node) {
  return member(node, "data_type");
}
template <class Json>
const Json& chunk_grid_of(const Json& node) {
  return member(node, "chunk_grid");
}
template <class Json>
const Json& fill_value_of(const Json& node) {
  return member(node, "fill_value");
}
template <class Json>
const Json& codecs_of(const Json& node) {
  return member(node, "codecs");
}
template <class Json>
const Json& dimension_names_of(const Json& node) {
  return member(node, "dimension_names");
}
template <class Json>
const Json& attributes_of(const Json& node) {
  return member(node, "attributes");
}
// 0 if the node has no shape.
template <class Json>
std::size_t rank_of(const Json& node) {
  return shape_of(node).size();
}

// An empty object if they are none.
template <class Json>
Json attributes_or_empty(const Json& node) {
  return attributes_of(node).is_object() ? attributes_of(node) : Json::object();
}
// One of the notes among the attributes that zarrbits has for what Zarr has no place for; null if absent.
template <class Json>
const Json& note_of(const Json& node, const char* key) {
  return member(member(attributes_of(node), text::annotation_key), key);
}
// 0 if it is not an extent.
template <class Json>
std::uint64_t extent_of(const Json& node, std::size_t dimension) {
  const Json& shape = shape_of(node);
  const bool is_valid = dimension < shape.size() && shape.is_array() && shape[dimension].is_number_unsigned();
  return is_valid ? shape[dimension].template get<std::uint64_t>() : 0;
}
// A node of which only these are known.
template <class Json>
Json partial_node(Json attributes, Json data_type = nullptr) {
  return {{"attributes", std::move(attributes)}, {"data_type", std::move(data_type)}};
}

// The names of the dimensions of an array: "" where one has none, and empty if none has. Some writers have them in the attribute
// that xarray has in Zarr v2.
std::vector<std::string> dimension_names_in(const text::json& array);
// The variables that an array refers to: the names of its dimensions, and what CF's attributes name.
std::vector<std::string> referenced_variables(const text::json& array);
// The shape of the chunks, or of the longest ones of a rectilinear grid; 0 for an invalid length.
std::vector<std::uint64_t> longest_chunk(const text::json& array);
bool is_rectilinear(const text::json& array);
// How many chunks the array has along each dimension; empty if its grid does not say it.
std::optional<std::vector<std::uint64_t>> chunks_along(const text::json& array);
// By a .zarray of Zarr v2: the numbers of chunks, and the separator of its keys.
std::optional<std::vector<std::uint64_t>> v2_chunks_along(const text::json& zarray);
char v2_separator(const text::json& zarray);
chunk_key_encoding key_encoding_of(const text::json& array);

// The first of the members that describe an array, and this one does not have; "" if it has all.
std::string missing_member(const text::json& array);
// Members that a reader must understand, and Zarr does not have.
std::vector<std::string> unknown_members(const nlohmann::json& node);
// Whether the members that Zarr has are equal in two nodes.
bool same_node(const nlohmann::json& a, const nlohmann::json& b);

void set_extent(text::json& array, std::size_t dimension, std::uint64_t extent);
void set_dimension_name(text::json& array, std::size_t dimension, const std::string& name);
void set_dimension_names(nlohmann::json& array, const std::vector<std::string>& names);
void set_data_type(text::json& array, text::json data_type);
void set_fill_value(text::json& array, text::json value);
void set_chunk_grid(text::json& array, text::json grid);
void set_codecs(text::json& array, text::json codecs);
void set_key_encoding(text::json& array, const chunk_key_encoding& keys);
// In an array, and in all arrays in the consolidated metadata of a group.
void set_all_key_encodings(text::json& node, const chunk_key_encoding& keys);

// The attributes, to change them; adds an empty object if absent.
template <class Json>
Json& mutable_attributes(Json& node) {
  return *node.emplace("attributes", Json::object()).first;
}
// Removes and returns a member, or the attributes; null if absent.
text::json take_member(text::json& object, std::string_view key);
text::json take_attributes(text::json& node);
// Removes and returns our own field of an array, in which its notes may be; null if absent.
template <class Json>
Json take_annotation(Json& node);

// Adds one of zarrbits' notes at the place where this node has such notes.
void set_note(text::json& node, const std::string& key, text::json value);
// Removes and returns the digest of the values that is noted at the root of a store; "" if absent.
template <class Json>
std::string take_digest_note(Json& node);

// What became of attributes of Zarr v2: a member that no store has. Readers may ignore it.
void set_remarks(text::json& node, const std::vector<detail::attribute_remark>& remarks);
std::vector<detail::attribute_remark> take_remarks(text::json& node);

// Consolidated metadata; and those of the nodes below the group, by their paths. Null if absent.
template <class Json>
const Json& consolidated_metadata_of(const Json& group) {
  return member(group, "consolidated_metadata");
}
template <class Json>
const Json& consolidated_nodes_of(const Json& group) {
  return member(consolidated_metadata_of(group), "metadata");
}
void set_consolidated(text::json& group, text::json nodes);
// Removes them; returns whether the group has any.
bool remove_consolidated(text::json& group);

// The text of a zarr.json.
std::string node_text(const text::json& node);

}  // namespace zarrbits::metadata

#endif
