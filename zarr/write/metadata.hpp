// SPDX-License-Identifier: BSL-1.0
//
// Nodes of a Zarr v3 store: keys, zarr.json, and chunks of strings.
//
#ifndef ZARRBITS_ZARR_WRITE_METADATA_HPP
#define ZARRBITS_ZARR_WRITE_METADATA_HPP

#include "compressors/buffer.hpp"
#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::zarr {

struct array_metadata {
  std::vector<std::uint64_t> shape, chunk;
  text::json chunk_shapes;  // "chunk_shapes" of a rectilinear grid; null: the grid is regular, with chunks of the shape above
  text::json data_type, fill_value, codecs;
  text::json attributes = text::json::object();
  std::vector<std::string> dimension_names;
};

// Why only Zarr v3 can have the array, as the end of a sentence; empty if Zarr v2 can, too. `gaps`: see to_v2_array().
std::string v3_only_reason(const array_metadata& m, bool gaps);

// zarr.json. `notes_apart`: moves the notes under our own key in the attributes to a place that users do not see. For an
// array it is a separate field, which readers need not understand. For a group it is hidden_annotation_key, because
// zarr-python 3.1 opens no group with such a field.
text::json chunk_grid_json(const array_metadata& m);
std::string array_text(const array_metadata& m, bool notes_apart = false);
std::string group_text(const text::json& attributes, bool notes_apart = false);

// "/a/b" and {1, 2}: "a/b/c/1/2". Trailing dimensions that are missing in `index` have one chunk.
std::string chunk_key(std::string_view store_path, std::span<const std::uint64_t> index, std::size_t trailing = 0);
// The other way round: {1, 2} of "1/2"; nothing if these are not the coordinates of a chunk.
std::optional<std::vector<std::uint64_t>> chunk_coordinates(std::string_view text);
std::string metadata_key(std::string_view store_path);

// The "codecs" of an array: bytes for fixed sizes, vlen-utf8 or vlen-bytes for strings.
text::json bytes_codecs(bool byte_order, bool big_endian);
text::json text_codecs(bool utf8);
// The checksum at the end of each chunk; append_crc32c() makes it.
void append_crc32c_codec(text::json& codecs);

// A chunk of strings for the codecs vlen-utf8 and vlen-bytes: their number, then each string with its length.
class vlen_encoder {
 public:
  vlen_encoder() : bytes_(4) {}
  void add(std::string_view s);
  std::size_t count() const { return count_; }
  compressors::buffer take();

 private:
  compressors::buffer bytes_;
  std::uint32_t count_ = 0;
};

}  // namespace zarrbits::zarr

#endif
