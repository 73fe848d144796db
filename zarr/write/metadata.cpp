// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/metadata.hpp"

#include "text/json_text.hpp"
#include "text/reserved_names.hpp"
#include "text/v2_metadata.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace zarrbits::zarr {

namespace {

// Moves our notes out of the attributes; null if absent.
text::json extract_notes(text::json& attributes) {
  const auto entry = attributes.find(text::annotation_key);
  if (entry == attributes.end()) return nullptr;
  text::json notes = std::move(*entry);
  attributes.erase(entry);
  return notes;
}

}  // namespace

text::json chunk_grid_json(const array_metadata& m) {
  if (m.chunk_shapes.is_null()) return {{"name", "regular"}, {"configuration", {{"chunk_shape", m.chunk}}}};
  return {{"name", "rectilinear"}, {"configuration", {{"kind", "inline"}, {"chunk_shapes", m.chunk_shapes}}}};
}

std::string array_text(const array_metadata& m, bool notes_apart) {
  text::json j = {{"zarr_format", 3},
                  {"node_type", "array"},
                  {"shape", m.shape},
                  {"data_type", m.data_type},
                  {"chunk_grid", chunk_grid_json(m)},
                  {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
                  {"fill_value", m.fill_value},
                  {"codecs", m.codecs}};
  if (!m.dimension_names.empty()) j["dimension_names"] = m.dimension_names;
  text::json attributes = m.attributes;
  if (text::json notes = notes_apart ? extract_notes(attributes) : text::json(nullptr); !notes.is_null()) {
    j[text::annotation_key] = {{"must_understand", false}};
    j[text::annotation_key].update(notes);
  }
  j["attributes"] = std::move(attributes);
  return text::python_json_text(j, 2) + "\n";
}

std::string v3_only_reason(const array_metadata& m, bool gaps) {
  try {
    text::to_v2_array(text::parse_untrusted_json(array_text(m)), gaps);
    return {};
  } catch (const text::not_representable_in_v2& reason) {
    return reason.what();
  }
}

std::string group_text(const text::json& attributes, bool notes_apart) {
  text::json j = {{"zarr_format", 3}, {"node_type", "group"}, {"attributes", attributes}};
  if (notes_apart) {
    if (text::json notes = extract_notes(j["attributes"]); !notes.is_null())
      j["attributes"][text::hidden_annotation_key] = std::move(notes);
  }
  return text::python_json_text(j, 2) + "\n";
}

std::string metadata_key(std::string_view store_path) {
  std::string key(store_path.substr(std::min<std::size_t>(1, store_path.size())));
  return key.empty() ? "zarr.json" : key + "/zarr.json";
}

std::string chunk_key(std::string_view store_path, std::span<const std::uint64_t> index, std::size_t trailing) {
  std::string key(store_path.substr(std::min<std::size_t>(1, store_path.size())));
  key += key.empty() ? "c" : "/c";
  for (const std::uint64_t i : index) key.append("/").append(std::to_string(i));
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

text::json bytes_codecs(bool byte_order, bool big_endian) {
  text::json first = {{"name", "bytes"}};
  if (byte_order) first["configuration"] = {{"endian", big_endian ? "big" : "little"}};
  return text::json::array({std::move(first)});
}

text::json text_codecs(bool utf8) { return text::json::array({{{"name", utf8 ? "vlen-utf8" : "vlen-bytes"}}}); }

void append_crc32c_codec(text::json& codecs) { codecs.push_back({{"name", "crc32c"}}); }

void vlen_encoder::add(std::string_view s) {
  if (s.size() > 0xFFFFFFFFU || count_ == 0xFFFFFFFFU)
    throw compressors::corrupt_chunk("a string of 4 GiB or more, which Zarr's codecs cannot hold");
  const auto n = static_cast<std::uint32_t>(s.size());
  for (unsigned i = 0; i < 4; ++i) bytes_.push_back(static_cast<std::byte>(n >> (8 * i)));
  const auto* p = reinterpret_cast<const std::byte*>(s.data());
  bytes_.insert(bytes_.end(), p, p + s.size());
  ++count_;
}

compressors::buffer vlen_encoder::take() {
  for (unsigned i = 0; i < 4; ++i) bytes_[i] = static_cast<std::byte>(count_ >> (8 * i));
  compressors::buffer out = std::move(bytes_);
  bytes_.assign(4, std::byte{0});
  count_ = 0;
  return out;
}

}  // namespace zarrbits::zarr
