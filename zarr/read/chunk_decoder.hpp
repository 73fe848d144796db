// SPDX-License-Identifier: BSL-1.0
//
// What decodes the chunks of an array. This reader has no decoders: the code that opens an array passes a function that makes
// one, so that `verify` decodes with other code than the rest (codecs/codec_chain.hpp, verify/decode/plain_codec_chain.hpp).
//
#ifndef ZARRBITS_ZARR_READ_CHUNK_DECODER_HPP
#define ZARRBITS_ZARR_READ_CHUNK_DECODER_HPP

#include "zarr/read/zarr_reader.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace zarrbits::zarr {

// What a zarr.json says about the chunks of an array.
struct encoding {
  const nlohmann::json& codecs;     // "codecs"
  const nlohmann::json& data_type;  // "data_type"
  const zarr_type& type;            // the same
  std::vector<std::uint64_t> chunk_shape;
  std::uint64_t max_string_bytes;  // limit for a decoded chunk of strings
};

struct size_limit_exceeded : store_error {
  size_limit_exceeded() : store_error("a chunk decompresses to more than it can hold") {}
};

// All functions throw store_error or not_supported. Several threads may call them.
class chunk_decoder {
 public:
  // sharding_indexed: a chunk of the array is a shard, with inner chunks and an index.
  struct sharding {
    std::vector<std::uint64_t> chunk_shape;  // of an inner chunk
    std::uint64_t index_size = 0;            // bytes in the store
    bool index_at_end = true;
  };

  virtual ~chunk_decoder() = default;
  const std::optional<sharding>& shards() const noexcept { return shards_; }

  // Throws not_supported if chunks (the inner ones of shards) are too large to be decoded.
  virtual void require_decodable() const = 0;
  // All elements of a chunk (an inner one of shards).
  virtual void decode(std::vector<std::byte> stored, element_buffer& out) const = 0;
  // Like decode(), for a chunk of another shape: the last ones of a rectilinear grid are smaller.
  virtual void decode(const std::vector<std::uint64_t>& shape, std::vector<std::byte> stored, element_buffer& out) const = 0;

  // For shards. True if codecs from bytes to bytes follow the shard.
  virtual bool encodes_shards() const = 0;
  // Decodes these codecs.
  virtual std::vector<std::byte> decode_shard(std::vector<std::byte> stored) const = 0;
  // Offset and length of each inner chunk, in C order.
  virtual std::vector<std::uint64_t> decode_index(std::vector<std::byte> stored) const = 0;

 protected:
  std::optional<sharding> shards_;
};

}  // namespace zarrbits::zarr

#endif
