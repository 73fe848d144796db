// SPDX-License-Identifier: BSL-1.0
#include "metadata/array_metadata.hpp"

#include "metadata/codec_id.hpp"
#include "metadata/named_configuration.hpp"
#include "metadata/node.hpp"
#include "metadata/parse_error.hpp"
#include "metadata/v2_metadata.hpp"
#include "text/reserved_names.hpp"

#include <utility>

namespace zarrbits::metadata {

using nlohmann::json;

namespace {

// Moves our notes out of the attributes; null if absent.
text::json extract_notes(text::json& attributes) {
  const auto entry = attributes.find(text::annotation_key);
  if (entry == attributes.end()) return nullptr;
  text::json notes = std::move(*entry);
  attributes.erase(entry);
  return notes;
}

text::json array_json(const array_metadata& m, bool notes_apart) {
  text::json j = {{"zarr_format", 3},
                  {"node_type", "array"},
                  {"shape", m.shape},
                  {"data_type", m.data_type},
                  {"chunk_grid", chunk_grid_json(m)},
                  {"chunk_key_encoding", to_json(m.keys)},
                  {"fill_value", m.fill_value},
                  {"codecs", m.codecs}};
  if (!m.dimension_names.empty()) j["dimension_names"] = m.dimension_names;
  text::json attributes = m.attributes;
  if (text::json notes = notes_apart ? extract_notes(attributes) : text::json(nullptr); !notes.is_null()) {
    j[text::annotation_key] = {{"must_understand", false}};
    j[text::annotation_key].update(notes);
  }
  j["attributes"] = std::move(attributes);
  return j;
}

std::vector<dimension_grid> parse_grid(const json& chunk_grid, const std::vector<std::uint64_t>& shape) {
  const auto [name, configuration] = parse_named_configuration(chunk_grid);
  if (name != "regular" && name != "rectilinear") throw unknown_extension("the chunk grid " + name);
  if (name == "rectilinear") {
    if (const json kind = require_member(configuration, "kind"); kind != "inline")
      throw unknown_extension("a rectilinear chunk grid of the kind " + text::sorted_json_text(kind));
  }
  const char* const key = name == "regular" ? "chunk_shape" : "chunk_shapes";
  const json& lengths = require_member(configuration, key);
  if (!lengths.is_array()) throw parse_error("\"" + std::string(key) + "\" is not a list");
  if (lengths.size() != shape.size())
    throw parse_error("\"" + std::string(key) + "\" and \"shape\" differ in their number of dimensions");
  std::vector<dimension_grid> grid;
  if (name == "regular") {
    const std::vector<std::uint64_t> chunk = parse_extents(lengths, key);
    for (std::size_t i = 0; i < shape.size(); ++i) grid.push_back(dimension_grid::regular(chunk[i], shape[i]));
  } else {
    for (std::size_t i = 0; i < shape.size(); ++i) grid.push_back(dimension_grid::parse(lengths[i], shape[i]));
  }
  return grid;
}

}  // namespace

std::string v3_only_reason(const array_metadata& m, bool gaps, v2_use use) {
  try {
    const text::json node = text::parse_untrusted_json(array_text(m));
    use == v2_use::copy ? to_v2_copy(node, gaps) : to_v2_array(node, gaps);
    return {};
  } catch (const not_representable_in_v2& reason) {
    return reason.what();
  }
}

std::string array_text(const array_metadata& m, bool notes_apart) { return node_text(array_json(m, notes_apart)); }

std::string group_text(const text::json& attributes, bool notes_apart) {
  text::json group = group_json(attributes);
  if (notes_apart) {
    text::json& stored = mutable_attributes(group);
    if (text::json notes = extract_notes(stored); !notes.is_null()) stored[text::hidden_annotation_key] = std::move(notes);
  }
  return node_text(group);
}

text::json group_json(text::json attributes) {
  return {{"zarr_format", 3}, {"node_type", "group"}, {"attributes", std::move(attributes)}};
}

text::json regular_grid(const std::vector<std::uint64_t>& chunk) { return to_json({"regular", {{"chunk_shape", chunk}}}); }

text::json chunk_grid_json(const array_metadata& m) {
  if (m.chunk_shapes.is_null()) return regular_grid(m.chunk);
  return to_json({"rectilinear", {{"kind", "inline"}, {"chunk_shapes", m.chunk_shapes}}});
}

text::json bytes_codecs(bool byte_order, bool big_endian) {
  text::json order;
  if (byte_order) order = {{"endian", big_endian ? "big" : "little"}};
  return text::json::array({codec_json(codec_id::bytes, std::move(order))});
}

text::json text_codecs(bool utf8) { return text::json::array({codec_json(utf8 ? codec_id::vlen_utf8 : codec_id::vlen_bytes)}); }

void append_crc32c_codec(text::json& codecs) { codecs.push_back(codec_json(codec_id::crc32c)); }

parsed_array parse_array(const json& node) {
  if (!is_v3(node) || !is_array(node)) throw parse_error("zarr.json does not describe a Zarr v3 array");
  if (const auto unknown = unknown_members(node); !unknown.empty())
    throw parse_error("zarr.json has the unknown key \"" + unknown.front() + "\"");
  if (!member(node, "storage_transformers").empty()) throw unknown_extension("storage transformers");
  parsed_array a;
  a.shape = parse_extents(require_member(node, "shape"), "shape");
  a.grid = parse_grid(require_member(node, "chunk_grid"), a.shape);
  a.keys = parse_key_encoding(require_member(node, "chunk_key_encoding"));
  a.data_type = require_member(node, "data_type");
  a.fill_value = require_member(node, "fill_value");
  a.codecs = require_member(node, "codecs");
  return a;
}

}  // namespace zarrbits::metadata
