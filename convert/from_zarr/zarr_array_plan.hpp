// SPDX-License-Identifier: BSL-1.0
//
// What becomes of an array of a Zarr store: its new metadata, and the cheapest way to its new chunks. Reads no chunk.
//
#ifndef ZARRBITS_CONVERT_FROM_ZARR_ZARR_ARRAY_PLAN_HPP
#define ZARRBITS_CONVERT_FROM_ZARR_ZARR_ARRAY_PLAN_HPP

#include "array/box.hpp"
#include "array/rechunk_plan.hpp"
#include "codecs/chunk_encoder.hpp"
#include "convert/from_zarr/source_array.hpp"
#include "text/json_text.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <zarrbits/convert.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace zarrbits::conversion {

// The target's objects are its shards or, without shards, its chunks.
enum class zarr_strategy {
  copy,     // the objects stay as they are
  reshard,  // the chunks stay, in other objects
  recode,   // each chunk is decoded and re-encoded
  rechunk,  // the chunks have other shapes
};

struct zarr_array_plan {
  zarr_strategy strategy = zarr_strategy::copy;
  text::json document;                           // the new zarr.json
  text::json codecs;                             // of its chunks
  array::extents shape, chunk, per_shard;        // of the target; per_shard: chunks of an object
  bool shards = false, regular = true;           // regular: the source's chunks all have one shape
  bool packs_if_it_fits = false;                 // values that do not fit make the array one of bytes
  bool keeps_stored_chunks = false;              // recode: source_array::is_stored_chunk() says which
  bool writes_gaps = false;                      // Zarr v2 does not have the fill value: missing chunks are written
  std::optional<codecs::chunk_encoder> encoder;  // recode, rechunk
  array::rechunk_plan plan;                      // rechunk
  bool chunk_by_chunk = false;                   // rechunk: a shard is larger than the memory

  array::extents object_shape() const;
  // In words; without "copied".
  std::string description() const;
};

// `bits_suffice`: whether the values fit in convert_encoding::bits. Throws zarrbits::error, store_error and not_supported.
zarr_array_plan plan_zarr_array(const source_array& array, const text::json& document, const std::string& path,
                                const convert_options& options, bool bits_suffice);

// Bytes of an element in memory, about.
std::uint64_t element_bytes(const zarr::zarr_type& type);

}  // namespace zarrbits::conversion

#endif
