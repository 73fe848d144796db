// SPDX-License-Identifier: BSL-1.0
//
// The "codecs" of an array, decoded by the registry. All but `verify` read Zarr chunks with it.
//
//   const zarr::zarr_array array(folder, codecs::make_decoder);
//
#ifndef ZARRBITS_CODECS_CODEC_CHAIN_HPP
#define ZARRBITS_CODECS_CODEC_CHAIN_HPP

#include "codecs/registry.hpp"
#include "zarr/read/chunk_decoder.hpp"

#include <zarrbits/codec.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::codecs {

class codec_chain final : public zarr::chunk_decoder {
 public:
  // Throws store_error or not_supported.
  explicit codec_chain(const zarr::encoding& e);

  void require_decodable() const override;
  void decode(std::vector<std::byte> stored, zarr::element_buffer& out) const override;
  void decode(const std::vector<std::uint64_t>& shape, std::vector<std::byte> stored, zarr::element_buffer& out) const override;
  bool encodes_shards() const override { return shards_ && !bytes_codecs_.empty(); }
  std::vector<std::byte> decode_shard(std::vector<std::byte> stored) const override;
  std::vector<std::uint64_t> decode_index(std::vector<std::byte> stored) const override;

 private:
  struct bytes_codec {
    const known_codec* codec;
    bytes_settings settings;
  };
  // A chunk between two decoders: a part of the stored bytes, or of those that the last decoder made.
  struct chunk_bytes {
    explicit chunk_bytes(std::vector<std::byte> chunk) : stored(std::move(chunk)), view(stored) {}
    std::vector<std::byte> stored;
    compressors::buffer decoded;
    std::span<const std::byte> view;
  };

  void add_array_codec(const known_codec& codec, const nlohmann::json& configuration);
  void add_array_to_bytes(const known_codec& codec, const nlohmann::json& entry, const nlohmann::json& configuration,
                          const zarr::encoding& e);
  void add_shards(const nlohmann::json& configuration, const nlohmann::json& data_type);
  void add_bytes_codec(const known_codec& codec, const nlohmann::json& configuration);

  std::optional<std::uint64_t> encoded_size(std::uint64_t elements) const;
  std::uint64_t max_decoded_bytes(std::uint64_t elements) const;
  void decode_bytes(chunk_bytes& chunk, std::uint64_t content, std::uint64_t max_size) const;
  void decode_numbers(std::span<const std::byte> in, std::uint64_t elements, zarr::element_buffer& out) const;
  void decode_strings(std::span<const std::byte> in, std::uint64_t elements, zarr::element_buffer& out) const;

  zarr::zarr_type type_;
  std::vector<std::uint64_t> chunk_shape_;
  std::uint64_t max_string_bytes_;
  // in the order of encoding
  std::vector<std::shared_ptr<const array_codec>> array_codecs_;
  std::string encoded_type_;                          // of array filters; empty: that of the array
  std::optional<zarrbits::codec> codec_;              // array to bytes; empty: strings and shards
  std::shared_ptr<const codec_chain> inner_, index_;  // of shards
  std::vector<bytes_codec> bytes_codecs_;
};

std::shared_ptr<const zarr::chunk_decoder> make_decoder(const zarr::encoding& e);

}  // namespace zarrbits::codecs

#endif
