// SPDX-License-Identifier: BSL-1.0
//
// The "codecs" of an array: how the elements of a chunk became bytes.
//
#ifndef ZARRBITS_ZARR_READ_ZARR_CODECS_HPP
#define ZARRBITS_ZARR_READ_ZARR_CODECS_HPP

#include "zarr/read/array_filters.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <zarrbits/codec.hpp>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <optional>

namespace zarrbits::zarr {

class codec_chain {
 public:
  // sharding_indexed: a chunk of the array is a shard, with its own inner chunks and an index.
  struct sharding {
    std::vector<std::uint64_t> chunk_shape;
    std::shared_ptr<const codec_chain> chunks;
    std::shared_ptr<const codec_chain> index;  // codecs of pairs of offset and length, an array of uint64
    bool index_at_end = true;
  };

  // Throws store_error or not_supported.
  codec_chain(const nlohmann::json& list, const nlohmann::json& data_type, const zarr_type& type,
              std::vector<std::uint64_t> chunk_shape, std::uint64_t max_text);

  // This chain for chunks of another shape: the last ones of a rectilinear grid are smaller.
  codec_chain for_shape(std::vector<std::uint64_t> chunk_shape) const;
  const std::vector<std::uint64_t>& chunk_shape() const noexcept { return chunk_shape_; }
  const std::optional<sharding>& shards() const noexcept { return shards_; }

  // Throws not_supported if a chunk that is not a shard is too large to be decoded.
  void require_decodable() const;
  // All elements of a chunk that is not a shard.
  void decode(std::vector<std::byte> bytes, element_buffer& out) const;
  // True if codecs from bytes to bytes follow the shard.
  bool has_bytes_codecs() const noexcept { return !bytes_codecs_.empty(); }
  std::vector<std::byte> decode_bytes(std::vector<std::byte> bytes) const;

  std::uint64_t elements() const;
  // Size of a chunk in the store, if it is the same for each chunk.
  std::optional<std::uint64_t> encoded_size() const;

 private:
  struct bytes_codec {
    enum kind_type { gzip, zstd, blosc, zlib, bz2, lz4, shuffle, fletcher32, crc32c, crc32c_of_numcodecs } kind;
    std::size_t element = 1;  // shuffle
    bool at_end = true;       // crc32c_of_numcodecs
  };

  void read_order(const nlohmann::json& configuration);
  void read_shards(const nlohmann::json& configuration, const nlohmann::json& data_type);
  void read_bytes_codec(bytes_codec::kind_type kind, const nlohmann::json& configuration);
  std::uint64_t max_step_bytes() const;
  std::vector<std::byte> decode_bytes_codecs(std::vector<std::byte> bytes, std::uint64_t max_size) const;
  void decode_strings(const std::vector<std::byte>& in, element_buffer& out) const;
  void untranspose(element_buffer& values) const;

  zarr_type type_;
  std::vector<std::uint64_t> chunk_shape_;
  std::uint64_t max_string_bytes_;
  std::vector<std::size_t> order_;        // of a transpose codec; empty: none
  std::vector<array_filter> filters_;     // after it, in the order of encoding
  std::optional<zarrbits::codec> codec_;  // array to bytes; none: vlen-utf8, vlen-bytes and shards
  std::optional<sharding> shards_;
  std::vector<bytes_codec> bytes_codecs_;  // bytes to bytes, in the order of encoding
};

}  // namespace zarrbits::zarr

#endif
