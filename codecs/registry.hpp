// SPDX-License-Identifier: BSL-1.0
//
// The codecs of Zarr v3 that our code decodes and encodes: a row for each. A new one is a name in metadata/codec_id.hpp, a file
// in compressors/ and a row; `verify` has a table of its own (verify/decode/plain_codec_chain.cpp).
//
//   const known_codec* codec = find_codec(codec_id::gzip);
//   codec->decode(chunk, {}, {.likely = 4096, .max = 1 << 20});   // the decompressed bytes
//
#ifndef ZARRBITS_CODECS_REGISTRY_HPP
#define ZARRBITS_CODECS_REGISTRY_HPP

#include "codecs/array_codecs.hpp"
#include "compressors/buffer.hpp"
#include "metadata/codec_id.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace zarrbits::codecs {

enum class codec_kind { array_to_array, array_to_bytes, bytes_to_bytes };

// The elements that a codec from array to bytes encodes. `numbers` includes all elements of a fixed size, which the core decodes.
enum class chunk_content { numbers, strings, shards };

// The parts of a configuration that decoders from bytes to bytes need.
struct bytes_settings {
  std::size_t element = 1;  // bytes of an element: shuffle
  bool at_start = false;    // position of a checksum
};

struct output_size {
  std::size_t likely = 0;  // that of a sound chunk; 0: not known
  std::uint64_t max = 0;   // more is refused, so that a few bytes cannot fill the memory
};

// The settings of encoders from bytes to bytes.
struct encoder_settings {
  int level = 0;
  std::size_t element = 1;  // blosc, shuffle: bytes of an element
  int shuffle = 0;          // blosc: its code
  std::string inside = {};  // blosc: the compressor
};

// All functions of decoders throw store_error or not_supported.
struct known_codec {
  metadata::codec_id id;
  codec_kind kind;
  int hdf5_filter = 0;  // id of the HDF5 filter with the same content, maybe in another frame; 0: none

  // Array to array.
  std::shared_ptr<const array_codec> (*make)(const array_codec_source& source) = nullptr;

  // Array to bytes.
  chunk_content content = chunk_content::numbers;

  // Bytes to bytes. nullptr: the decoder needs no settings.
  bytes_settings (*parse)(const nlohmann::json& configuration) = nullptr;
  // Returns the decoded bytes. nullptr for checksums.
  compressors::buffer (*decode)(std::span<const std::byte> encoded, const bytes_settings& settings, output_size size) = nullptr;
  // Returns the bytes without their checksum, which is right. nullptr for other codecs.
  std::span<const std::byte> (*check)(std::span<const std::byte> encoded, const bytes_settings& settings) = nullptr;
  // Number of bytes that encoding adds; empty if it depends on the bytes.
  std::optional<unsigned> added_bytes = {};

  // Bytes to bytes. nullptr: the encoder needs no settings. `element`: bytes of an element in memory. Throws zarrbits::error for
  // settings that are not written.
  encoder_settings (*parse_encoder)(const nlohmann::json& configuration, std::size_t element) = nullptr;
  // nullptr: the codec is not written, or not from bytes to bytes.
  compressors::buffer (*encode)(compressors::buffer bytes, const encoder_settings& settings) = nullptr;

  std::string_view name() const { return metadata::codec_name(id); }
};

std::span<const known_codec> known_codecs();
// nullptr if the table has no such codec.
const known_codec* find_codec(metadata::codec_id id);

bool is_bytes_to_bytes(metadata::codec_id id);
// True if chunks contain all that their decoder needs, so that two configurations of the codec decode the same chunks.
bool is_self_describing(metadata::codec_id id);

}  // namespace zarrbits::codecs

#endif
