// SPDX-License-Identifier: BSL-1.0
//
// Encodes chunks as the "codecs" of an array say: the counterpart of codecs/codec_chain.hpp.
//
//   const chunk_encoder encoder(codecs, "float32");
//   out.put(key, encoder.encode(values, {100, 100}));   // values in C order and in this machine's byte order
//
#ifndef ZARRBITS_ZARR_WRITE_CHUNK_ENCODER_HPP
#define ZARRBITS_ZARR_WRITE_CHUNK_ENCODER_HPP

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

namespace zarrbits::zarr {

class chunk_encoder {
 public:
  // `codecs`: those of chunks, without sharding_indexed. Throws zarrbits::error if there is one that is not written here.
  chunk_encoder(const text::json& codecs, const text::json& data_type);

  // Callable from several threads. Throw zarrbits::data_error for a value that the codec does not take, and corrupt_chunk for a
  // chunk that is too large.
  compressors::buffer encode(std::span<const std::byte> values, const std::vector<std::uint64_t>& shape) const;
  compressors::buffer encode(std::span<const std::string> values, const std::vector<std::uint64_t>& shape) const;

 private:
  struct step {
    enum kind_type { gzip, zstd, blosc, zlib, bz2, lz4, shuffle, fletcher32, crc32c } kind;
    int level = 0;
    std::size_t element = 1;  // blosc, shuffle
    int order = 0;            // blosc: 0 none, 1 bytes, 2 bits
    std::string inside = {};  // blosc
  };

  step step_of(step::kind_type kind, const text::json& configuration) const;
  compressors::buffer compressed(compressors::buffer bytes) const;

  std::vector<std::size_t> order_;  // of a transpose
  std::optional<codec> codec_;      // none: strings
  std::size_t element_ = 1;         // bytes of an element in memory
  std::vector<step> steps_;
};

}  // namespace zarrbits::zarr

#endif
