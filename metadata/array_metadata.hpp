// SPDX-License-Identifier: BSL-1.0
//
// The zarr.json of arrays and groups that zarrbits writes, and of arrays that it reads.
//
//   out.put(metadata_key("/a"), array_text({.shape = {100}, .chunk = {10}, .data_type = "int16", .fill_value = 0, .codecs =
//   ..})); const parsed_array array = parse_array(node);
//
#ifndef ZARRBITS_METADATA_ARRAY_METADATA_HPP
#define ZARRBITS_METADATA_ARRAY_METADATA_HPP

#include "metadata/chunk_key_encoding.hpp"
#include "metadata/dimension_grid.hpp"
#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace zarrbits::metadata {

struct array_metadata {
  std::vector<std::uint64_t> shape, chunk;
  text::json chunk_shapes;  // "chunk_shapes" of a rectilinear grid; null: the grid is regular, with chunks of the shape above
  text::json data_type, fill_value, codecs;
  text::json attributes = text::json::object();
  std::vector<std::string> dimension_names;
  chunk_key_encoding keys = {};
};

// Why only Zarr v3 can have the array, as the end of a sentence; empty if Zarr v2 can, too. `gaps`: see to_v2_array() and
// to_v2_copy().
enum class v2_use { references, copy };
std::string v3_only_reason(const array_metadata& m, bool gaps, v2_use use = v2_use::references);

// zarr.json. `notes_apart`: moves the notes under our own key in the attributes to a place that users do not see. For an
// array it is a separate field, which readers need not understand. For a group it is hidden_annotation_key, because
// zarr-python 3.1 opens no group with such a field.
std::string array_text(const array_metadata& m, bool notes_apart = false);
std::string group_text(const text::json& attributes, bool notes_apart = false);
text::json group_json(text::json attributes);

text::json regular_grid(const std::vector<std::uint64_t>& chunk);
text::json chunk_grid_json(const array_metadata& m);

// The "codecs" of an array: bytes for fixed sizes, vlen-utf8 or vlen-bytes for strings.
text::json bytes_codecs(bool byte_order, bool big_endian);
text::json text_codecs(bool utf8);
// The checksum at the end of each chunk; compressors::append_crc32c() makes it.
void append_crc32c_codec(text::json& codecs);

// What a zarr.json of any origin says about an array.
struct parsed_array {
  std::vector<std::uint64_t> shape;
  std::vector<dimension_grid> grid;  // one for each dimension
  chunk_key_encoding keys;
  nlohmann::json data_type, fill_value, codecs;
};
// Throws parse_error or unknown_extension. What the data type, the fill value and the codecs are is for their readers to check.
parsed_array parse_array(const nlohmann::json& node);

}  // namespace zarrbits::metadata

#endif
