// SPDX-License-Identifier: BSL-1.0
//
// The names of Zarr v3's codecs, which are compared and written as codec_id elsewhere: a name is spelled in the table of
// codec_id.cpp alone. What a codec does is in codecs/registry.hpp.
//
//   codec_id_of("numcodecs.zlib");                        // codec_id::zlib
//   codec_json(codec_id::gzip, {{"level", 5}});           // {"name": "gzip", "configuration": {"level": 5}}
//
#ifndef ZARRBITS_METADATA_CODEC_ID_HPP
#define ZARRBITS_METADATA_CODEC_ID_HPP

#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace zarrbits::metadata {

enum class codec_id {
  unknown,
  // array to array
  transpose,
  delta,
  fixed_scale_offset,
  quantize,
  as_type,
  bit_round,
  categorize,
  // array to bytes
  bytes,
  packbits,
  numcodecs_packbits,
  vlen_utf8,
  vlen_bytes,
  sharding,
  // bytes to bytes
  gzip,
  zlib,
  zstd,
  blosc,
  bz2,
  lz4,
  shuffle,
  fletcher32,
  crc32c,
  numcodecs_crc32c,  // may stand at the start of a chunk
};

// Names of codecs that zarr-python takes from numcodecs begin with it.
inline constexpr std::string_view numcodecs_prefix = "numcodecs.";

// Filters of numcodecs that replace values by others, before any codec makes bytes of them.
constexpr bool is_array_filter(codec_id id) { return id >= codec_id::delta && id <= codec_id::categorize; }

codec_id codec_id_of(std::string_view name);
// The present name, if a codec has an older one. "" for unknown.
std::string_view codec_name(codec_id id);

// A codec in "codecs". Without a configuration if it is null.
text::json codec_json(codec_id id, text::json configuration = nullptr);
codec_id codec_id_in(const text::json& codec);

}  // namespace zarrbits::metadata

#endif
