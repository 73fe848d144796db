// SPDX-License-Identifier: BSL-1.0
//
// The "codecs" of an array, decoded for `verify` alone, and with none of the code that decodes and encodes elsewhere (codecs/,
// compressors/): one small function for each codec, and the portable kernels of the core.
//
//   const zarr::zarr_array array(folder, make_plain_decoder);
//
#ifndef ZARRBITS_VERIFY_DECODE_PLAIN_CODEC_CHAIN_HPP
#define ZARRBITS_VERIFY_DECODE_PLAIN_CODEC_CHAIN_HPP

#include "verify/decode/plain_array_filters.hpp"
#include "zarr/read/chunk_decoder.hpp"

#include <zarrbits/codec.hpp>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <optional>

namespace zarrbits::verification {

class plain_codec_chain final : public zarr::chunk_decoder {
 public:
  // Throws store_error or not_supported.
  explicit plain_codec_chain(const zarr::encoding& e);

  void require_decodable() const override;
  void decode(std::vector<std::byte> stored, zarr::element_buffer& out) const override;
  void decode(const std::vector<std::uint64_t>& shape, std::vector<std::byte> stored, zarr::element_buffer& out) const override;
  bool encodes_shards() const override { return shards_ && !bytes_codecs_.empty(); }
  std::vector<std::byte> decode_shard(std::vector<std::byte> stored) const override;
  std::vector<std::uint64_t> decode_index(std::vector<std::byte> stored) const override;

 private:
  struct bytes_codec {
    enum kind_type { gzip, zstd, blosc, zlib, bz2, lz4, shuffle, fletcher32, crc32c, crc32c_of_numcodecs } kind;
    std::size_t element = 1;  // shuffle
    bool at_end = true;       // crc32c_of_numcodecs
  };

  void read_order(const nlohmann::json& configuration);
  void read_shards(const nlohmann::json& configuration, const nlohmann::json& data_type);
  void read_bytes_codec(bytes_codec::kind_type kind, const nlohmann::json& configuration);
  std::uint64_t elements() const;
  // Size of a chunk in the store, if it is the same for each chunk.
  std::optional<std::uint64_t> encoded_size() const;
  std::uint64_t max_step_bytes() const;
  void decode_chunk_bytes(std::vector<std::byte> bytes, zarr::element_buffer& out) const;
  std::vector<std::byte> decode_bytes_codecs(std::vector<std::byte> bytes, std::uint64_t max_size) const;
  void decode_strings(const std::vector<std::byte>& in, zarr::element_buffer& out) const;
  void untranspose(zarr::element_buffer& values) const;

  zarr::zarr_type type_;
  std::vector<std::uint64_t> chunk_shape_;
  std::uint64_t max_string_bytes_;
  std::vector<std::size_t> order_;                           // of a transpose codec; empty: none
  std::vector<plain_array_filter> filters_;                  // after it, in the order of encoding
  std::optional<zarrbits::codec> codec_;                     // array to bytes; none: vlen-utf8, vlen-bytes and shards
  std::shared_ptr<const plain_codec_chain> chunks_, index_;  // of shards; the index is an array of uint64
  std::vector<bytes_codec> bytes_codecs_;                    // bytes to bytes, in the order of encoding
};

std::shared_ptr<const zarr::chunk_decoder> make_plain_decoder(const zarr::encoding& e);

}  // namespace zarrbits::verification

#endif
