// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/node.hpp"

#include "text/json_text.hpp"
#include "text/reserved_names.hpp"
#include "text/v2_metadata.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace zarrbits::conversion {

namespace {

// Moves our notes out of the attributes; null if there are none.
json take_notes(json& attributes) {
  const auto found = attributes.find(own_key);
  if (found == attributes.end()) return nullptr;
  json notes = std::move(*found);
  attributes.erase(found);
  return notes;
}

}  // namespace

json chunk_grid_json(const array_metadata& m) {
  if (m.chunk_shapes.is_null()) return {{"name", "regular"}, {"configuration", {{"chunk_shape", m.chunk}}}};
  return {{"name", "rectilinear"}, {"configuration", {{"kind", "inline"}, {"chunk_shapes", m.chunk_shapes}}}};
}

std::string array_text(const array_metadata& m, bool notes_apart) {
  json j = {{"zarr_format", 3},
            {"node_type", "array"},
            {"shape", m.shape},
            {"data_type", m.data_type},
            {"chunk_grid", chunk_grid_json(m)},
            {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
            {"fill_value", m.fill_value},
            {"codecs", m.codecs}};
  if (!m.dimension_names.empty()) j["dimension_names"] = m.dimension_names;
  json attributes = m.attributes;
  if (json notes = notes_apart ? take_notes(attributes) : json(nullptr); !notes.is_null()) {
    j[own_key] = {{"must_understand", false}};
    j[own_key].update(notes);
  }
  j["attributes"] = std::move(attributes);
  return python_json_text(j, 2) + "\n";
}

std::string why_only_v3(const array_metadata& m, bool gaps) {
  try {
    v2_array_of(parse_foreign_json(array_text(m)), gaps);
    return {};
  } catch (const no_v2_form& why) {
    return why.what();
  }
}

std::string group_text(const json& attributes, bool notes_apart) {
  json j = {{"zarr_format", 3}, {"node_type", "group"}, {"attributes", attributes}};
  if (notes_apart) {
    if (json notes = take_notes(j["attributes"]); !notes.is_null()) j["attributes"][hidden_own_key] = std::move(notes);
  }
  return python_json_text(j, 2) + "\n";
}

std::string metadata_key(std::string_view store_path) {
  std::string key(store_path.substr(std::min<std::size_t>(1, store_path.size())));
  return key.empty() ? "zarr.json" : key + "/zarr.json";
}

std::string chunk_key(std::string_view store_path, std::span<const std::uint64_t> at, std::size_t trailing) {
  std::string key(store_path.substr(std::min<std::size_t>(1, store_path.size())));
  key += key.empty() ? "c" : "/c";
  for (const std::uint64_t i : at) key.append("/").append(std::to_string(i));
  for (std::size_t i = 0; i < trailing; ++i) key += "/0";
  return key;
}

std::optional<std::vector<std::uint64_t>> chunk_coordinates(std::string_view text) {
  std::vector<std::uint64_t> coordinates;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('/'));
    std::uint64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    if (error != std::errc() || end != part.data() + part.size()) return {};
    coordinates.push_back(index);
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return coordinates;
}

json bytes_codecs(bool byte_order, bool big_endian) {
  json first = {{"name", "bytes"}};
  if (byte_order) first["configuration"] = {{"endian", big_endian ? "big" : "little"}};
  return json::array({std::move(first)});
}

json text_codecs(bool utf8) { return json::array({{{"name", utf8 ? "vlen-utf8" : "vlen-bytes"}}}); }

void append_crc32c_codec(json& codecs) { codecs.push_back({{"name", "crc32c"}}); }

void text_chunk::add(std::string_view s) {
  if (s.size() > 0xFFFFFFFFU || count_ == 0xFFFFFFFFU)
    throw damaged_chunk("a string of 4 GiB or more, which Zarr's codecs cannot hold");
  const auto n = static_cast<std::uint32_t>(s.size());
  for (unsigned i = 0; i < 4; ++i) bytes_.push_back(static_cast<std::byte>(n >> (8 * i)));
  const auto* p = reinterpret_cast<const std::byte*>(s.data());
  bytes_.insert(bytes_.end(), p, p + s.size());
  ++count_;
}

buffer text_chunk::take() {
  for (unsigned i = 0; i < 4; ++i) bytes_[i] = static_cast<std::byte>(count_ >> (8 * i));
  buffer out = std::move(bytes_);
  bytes_.assign(4, std::byte{0});
  count_ = 0;
  return out;
}

}  // namespace zarrbits::conversion
