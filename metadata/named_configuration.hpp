// SPDX-License-Identifier: BSL-1.0
//
// Extensions in a zarr.json (codecs, data types, grids, key encodings): a name alone, or an object with "name" and
// "configuration".
//
//   read_named_configuration(parse_json(R"("bytes")")).name;    // "bytes"
//   to_json({"gzip", {{"level", 5}}});                          // {"name": "gzip", "configuration": {"level": 5}}
//
// Functions with the parameter Json take both of the library's types: members in order, and sorted.
//
#ifndef ZARRBITS_METADATA_NAMED_CONFIGURATION_HPP
#define ZARRBITS_METADATA_NAMED_CONFIGURATION_HPP

#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::metadata {

template <class Json>
struct basic_named_configuration {
  std::string name;
  Json configuration = Json::object();
};

using named_configuration = basic_named_configuration<text::json>;
using sorted_named_configuration = basic_named_configuration<nlohmann::json>;
using codec_list = std::vector<named_configuration>;

// The member of an object; null if absent, or if it is not an object.
template <class Json>
const Json& member(const Json& object, const char* key) {
  static const Json null;
  const auto entry = object.is_object() ? object.find(key) : object.end();
  return entry == object.end() ? null : *entry;
}

// Unchecked: the name is "" if absent, and the configuration an empty object.
template <class Json>
std::string name_of(const Json& extension) {
  const Json& name = extension.is_string() ? extension : member(extension, "name");
  return name.is_string() ? name.template get<std::string>() : "";
}
template <class Json>
Json configuration_of(const Json& extension) {
  const Json& configuration = member(extension, "configuration");
  return configuration.is_object() ? configuration : Json::object();
}
template <class Json>
basic_named_configuration<Json> read_named_configuration(const Json& extension) {
  return {name_of(extension), configuration_of(extension)};
}

// The number of a configuration; `otherwise` if absent, or not from 0 to `max_value`.
std::uint64_t number_in(const text::json& configuration, const char* key, std::uint64_t max_value, std::uint64_t otherwise);

// Throws parse_error if there is no name.
sorted_named_configuration parse_named_configuration(const nlohmann::json& extension);

// Without a configuration if it is null.
text::json to_json(const named_configuration& extension);

// "codecs"; empty if it is not a list.
codec_list read_codecs(const text::json& codecs);

// Whether the codec bytes writes the numbers in big-endian order.
bool is_big_endian(const text::json& codecs);

// Data types of fixed length ("raw_bytes" and others), and of fields that have {name, data type} each.
text::json sized_type(const std::string& name, std::uint64_t length_bytes);
text::json struct_type(const std::vector<std::pair<std::string, text::json>>& fields);

// The fields of the data type "struct". zarr-python's older one, "structured", has them as [name, data type]. Absent members
// are null.
template <class Json>
struct struct_field {
  const Json &name, &data_type;
};
template <class Json>
std::vector<struct_field<Json>> struct_fields(const Json& data_type) {
  std::vector<struct_field<Json>> fields;
  const Json& list = member(member(data_type, "configuration"), "fields");
  for (const Json& f : list) {
    if (f.is_array() && f.size() == 2) fields.push_back({f[0], f[1]});
    else fields.push_back({member(f, "name"), member(f, "data_type")});
  }
  return fields;
}
// "length_bytes" of a data type of fixed length; null if it has none.
template <class Json>
const Json& length_bytes(const Json& data_type) {
  return member(member(data_type, "configuration"), "length_bytes");
}

// The codec sharding_indexed.
struct sharding {
  std::vector<std::uint64_t> chunk_shape;  // of an inner chunk
  nlohmann::json codecs, index_codecs;
  bool index_at_end = true;
};
// Throws parse_error, or unknown_extension if there are shards inside these shards.
sharding parse_sharding(const nlohmann::json& configuration);
// The codecs of an array with shards, from the shape and the codecs of the inner chunks. Its chunk_grid has the shape of a shard.
text::json sharding_codecs(const text::json& inner_chunk_shape, const text::json& inner_codecs);
// Whether it is sharding_indexed in that form, so that inner chunks can be added to a shard.
bool is_extensible_sharding(const text::json& codecs);
// The codecs of chunks, without shards around them; `codecs` itself without sharding.
const text::json& inner_codecs(const text::json& codecs);
// Those in the codec sharding_indexed, and the shape of its inner chunks, unchecked; null if absent.
const text::json& codecs_in_shards(const text::json& sharding);
const text::json& inner_chunk_shape(const text::json& sharding);

// Throws parse_error if it is not a list of extents. `key`: of the list.
std::vector<std::uint64_t> parse_extents(const nlohmann::json& list, const char* key);
// Throws parse_error if absent.
const nlohmann::json& require_member(const nlohmann::json& object, const char* key);

}  // namespace zarrbits::metadata

#endif
