// SPDX-License-Identifier: BSL-1.0
//
// Codecs from array to array: transpose, and the filters of numcodecs that replace the values of a chunk by others. Zarr v2 has
// these as "filters", and zarr-python in Zarr v3 as codecs. They are decoded, and not encoded.
//
#ifndef ZARRBITS_CODECS_ARRAY_CODECS_HPP
#define ZARRBITS_CODECS_ARRAY_CODECS_HPP

#include "metadata/codec_id.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zarrbits::codecs {

class array_codec {
 public:
  virtual ~array_codec() = default;
  // The data type of the encoded values; empty: that of the decoded ones.
  virtual std::string encoded_type() const { return {}; }
  // Replaces the encoded values of a chunk of this shape by the decoded ones. `max_string_bytes`: limit for texts. Throws
  // store_error and not_supported.
  virtual void decode(zarr::element_buffer& values, const std::vector<std::uint64_t>& shape,
                      std::uint64_t max_string_bytes) const = 0;
};

struct array_codec_source {
  metadata::codec_id codec;
  const nlohmann::json& configuration;
  const zarr::zarr_type& type;  // of the decoded values
  std::size_t rank;             // of the array
};

// Each throws store_error and not_supported.
std::shared_ptr<const array_codec> make_transpose(const array_codec_source& source);
std::shared_ptr<const array_codec> make_array_filter(const array_codec_source& source);
std::shared_ptr<const array_codec> make_categorize(const array_codec_source& source);

}  // namespace zarrbits::codecs

#endif
