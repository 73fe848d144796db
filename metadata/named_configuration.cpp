// SPDX-License-Identifier: BSL-1.0
#include "metadata/named_configuration.hpp"

#include "metadata/codec_id.hpp"
#include "metadata/parse_error.hpp"

#include <algorithm>
#include <utility>

namespace zarrbits::metadata {

using nlohmann::json;
using text::sorted_json_text;

sorted_named_configuration parse_named_configuration(const json& extension) {
  if (!extension.is_string() && !member(extension, "name").is_string())
    throw parse_error(sorted_json_text(extension) + " has no name");
  return read_named_configuration(extension);
}

std::uint64_t number_in(const text::json& configuration, const char* key, std::uint64_t max_value, std::uint64_t otherwise) {
  const text::json& number = member(configuration, key);
  return number.is_number_unsigned() && number.get<std::uint64_t>() <= max_value ? number.get<std::uint64_t>() : otherwise;
}

text::json to_json(const named_configuration& extension) {
  text::json j = {{"name", extension.name}};
  if (!extension.configuration.is_null()) j["configuration"] = extension.configuration;
  return j;
}

codec_list read_codecs(const text::json& codecs) {
  codec_list list;
  if (!codecs.is_array()) return list;
  for (const text::json& codec : codecs) list.push_back(read_named_configuration(codec));
  return list;
}

bool is_big_endian(const text::json& codecs) {
  const codec_list list = read_codecs(codecs);
  return std::any_of(list.begin(), list.end(), [](const named_configuration& codec) {
    return codec_id_of(codec.name) == codec_id::bytes && member(codec.configuration, "endian") == "big";
  });
}

text::json sized_type(const std::string& name, std::uint64_t length_bytes) {
  return to_json({name, {{"length_bytes", length_bytes}}});
}

text::json struct_type(const std::vector<std::pair<std::string, text::json>>& fields) {
  text::json list = text::json::array();
  for (const auto& [name, data_type] : fields) list.push_back({{"name", name}, {"data_type", data_type}});
  return to_json({"struct", {{"fields", std::move(list)}}});
}

sharding parse_sharding(const json& configuration) {
  sharding s;
  s.chunk_shape = parse_extents(require_member(configuration, "chunk_shape"), "chunk_shape");
  s.codecs = require_member(configuration, "codecs");
  s.index_codecs = require_member(configuration, "index_codecs");
  // who decodes them recurses as deep as the store says
  for (const json* list : {&s.codecs, &s.index_codecs}) {
    for (const json& codec : *list) {
      if (codec_id_of(parse_named_configuration(codec).name) == codec_id::sharding)
        throw unknown_extension("shards inside shards");
    }
  }
  const json location = configuration.value("index_location", json("end"));
  if (location != "end" && location != "start") throw parse_error("the index_location of shards is neither start nor end");
  s.index_at_end = location == "end";
  return s;
}

text::json sharding_codecs(const text::json& inner_chunk_shape, const text::json& inner_codecs) {
  const text::json bytes = codec_json(codec_id::bytes, {{"endian", "little"}}), crc = codec_json(codec_id::crc32c);
  return text::json::array({codec_json(codec_id::sharding, {{"chunk_shape", inner_chunk_shape},
                                                            {"codecs", inner_codecs},
                                                            {"index_codecs", text::json::array({bytes, crc})},
                                                            {"index_location", "end"}})});
}

bool is_extensible_sharding(const text::json& codecs) {
  if (codecs.size() != 1) return false;
  const text::json configuration = configuration_of(codecs[0]);
  const text::json &location = member(configuration, "index_location"), &inner = member(configuration, "codecs");
  const codec_list index = read_codecs(member(configuration, "index_codecs"));
  return index.size() == 2 && codec_id_of(index[0].name) == codec_id::bytes && codec_id_of(index[1].name) == codec_id::crc32c &&
         (location.is_null() || location == "end") && inner.is_array() && !inner.empty();
}

const text::json& codecs_in_shards(const text::json& sharding) { return member(member(sharding, "configuration"), "codecs"); }

const text::json& inner_codecs(const text::json& codecs) {
  for (const text::json& codec : codecs) {
    if (codec_id_in(codec) != codec_id::sharding) continue;
    const text::json& inner = codecs_in_shards(codec);
    return inner.is_null() ? codecs : inner;
  }
  return codecs;
}

const text::json& inner_chunk_shape(const text::json& sharding) {
  return member(member(sharding, "configuration"), "chunk_shape");
}

std::vector<std::uint64_t> parse_extents(const json& list, const char* key) {
  if (!list.is_array()) throw parse_error(std::string("\"") + key + "\" is not a list");
  std::vector<std::uint64_t> extents;
  for (const json& n : list) {
    if (!n.is_number_unsigned())
      throw parse_error(std::string("\"") + key + "\" holds " + sorted_json_text(n) + ", which is not an extent");
    extents.push_back(n.get<std::uint64_t>());
  }
  return extents;
}

const json& require_member(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) throw parse_error(std::string("zarr.json has no \"") + key + "\"");
  return object[key];
}

}  // namespace zarrbits::metadata
