// SPDX-License-Identifier: BSL-1.0
//
// Encodes chunks as the "codecs" of an array say: the counterpart of codec_chain.hpp.
//
//   const chunk_encoder encoder(codecs, "float32");
//   out.put(key, encoder.encode(values, {100, 100}));   // values in C order and in this machine's byte order
//
#ifndef ZARRBITS_CODECS_CHUNK_ENCODER_HPP
#define ZARRBITS_CODECS_CHUNK_ENCODER_HPP

#include "codecs/registry.hpp"
#include "compressors/buffer.hpp"
#include "text/json_text.hpp"

#include <zarrbits/codec.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::codecs {

class chunk_encoder {
 public:
  // `codecs`: those of chunks, without sharding_indexed. Throws zarrbits::error if there is one that is not written here.
  chunk_encoder(const text::json& codecs, const text::json& data_type);

  // Callable from several threads. Throw zarrbits::data_error for a value that the codec does not take, and corrupt_chunk for a
  // chunk that is too large.
  compressors::buffer encode(std::span<const std::byte> values, const std::vector<std::uint64_t>& shape) const;
  compressors::buffer encode(std::span<const std::string> values, const std::vector<std::uint64_t>& shape) const;

 private:
  struct bytes_encoder {
    const known_codec* codec;
    encoder_settings settings;
  };

  compressors::buffer compressed(compressors::buffer bytes) const;

  std::vector<std::size_t> order_;  // of a transpose
  std::optional<codec> codec_;      // none: strings
  std::size_t element_ = 1;         // bytes of an element in memory
  std::vector<bytes_encoder> bytes_encoders_;
};

}  // namespace zarrbits::codecs

#endif
