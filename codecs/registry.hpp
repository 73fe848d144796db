// SPDX-License-Identifier: BSL-1.0
//
// The codecs of Zarr v3 that our code decodes: a row for each. A new one is a file in compressors/ and a row; `verify` has a
// table of its own (verify/decode/plain_codec_chain.cpp).
//
//   const known_codec* codec = find_codec("gzip");
//   codec->decode(chunk, {}, {.likely = 4096, .max = 1 << 20});   // the decompressed bytes
//
#ifndef ZARRBITS_CODECS_REGISTRY_HPP
#define ZARRBITS_CODECS_REGISTRY_HPP

#include "codecs/array_codecs.hpp"
#include "compressors/buffer.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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

// All functions throw store_error or not_supported.
struct known_codec {
  std::string_view name;  // in Zarr v3; numcodecs' codec "numcodecs.NAME" is "NAME" in Zarr v2
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
};

std::span<const known_codec> known_codecs();
// nullptr if the table has no such codec.
const known_codec* find_codec(std::string_view name);

bool is_bytes_to_bytes(std::string_view name);
// True for filters of numcodecs that replace the values of a chunk by others: "numcodecs.delta".
bool is_array_filter(std::string_view name);

}  // namespace zarrbits::codecs

#endif
