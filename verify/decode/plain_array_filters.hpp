// SPDX-License-Identifier: BSL-1.0
//
// The filters of numcodecs that make other values of the values of a chunk, before they become bytes: Zarr v2 has them as
// "filters", and zarr-python in Zarr v3 as codecs from array to array. They are read, and not written.
//
//   if (is_array_filter("numcodecs.delta")) {
//     const plain_array_filter filter("numcodecs.delta", {{"dtype", "<i4"}, {"astype", "<i2"}}, zarr::parse_type("int32"));
//     filter.stored().name();                 // "int16": the type that the next codec gets
//     filter.decode(values, 1 << 20);         // int32, in this machine's byte order
//   }
//
#ifndef ZARRBITS_VERIFY_DECODE_PLAIN_ARRAY_FILTERS_HPP
#define ZARRBITS_VERIFY_DECODE_PLAIN_ARRAY_FILTERS_HPP

#include "zarr/read/zarr_reader.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::verification {

// True for the name of such a codec in Zarr v3: "numcodecs.delta".
bool is_array_filter(std::string_view name);

// A data type of numpy: one number.
struct numpy_number {
  char kind = 'u';  // as in "<i4": b, i, u, f
  std::size_t size = 1;

  std::string name() const;  // "int32"
};
// "<i4", "i4", "int32". Empty if it is not a number that these filters take.
std::optional<numpy_number> numpy_number_of(const std::string& dtype);

class plain_array_filter {
 public:
  // `array`: the type of the values that are encoded. Throws zarr::store_error and zarr::not_supported.
  plain_array_filter(const std::string& name, const nlohmann::json& configuration, const zarr::zarr_type& array);

  // The type of the encoded values.
  const numpy_number& stored() const noexcept { return encoded_; }
  // Replaces encoded values by decoded ones. `max_bytes`: bytes of texts.
  void decode(zarr::element_buffer& values, std::uint64_t max_bytes) const;

 private:
  enum kind_type { delta, scaled, cast, none, categories };

  void decode_texts(zarr::element_buffer& values, std::uint64_t max_bytes) const;

  kind_type kind_ = none;
  zarr::zarr_type array_;
  numpy_number encoded_, decoded_;
  double scale_ = 1, offset_ = 0;
  std::optional<std::vector<std::string>> labels_;
};

}  // namespace zarrbits::verification

#endif
