// SPDX-License-Identifier: BSL-1.0
//
// Zarr v2's metadata of nodes whose zarr.json (Zarr v3) is given. The bytes of chunks are the same in both.
//
//   const v2_array a = to_v2_array(node, false);
//   a.zarray;  // {"zarr_format": 2, "shape": .., "dtype": "<i4", "filters": [..], ..}
//   a.zattrs;  // with "_ARRAY_DIMENSIONS", which xarray needs
//
#ifndef ZARRBITS_TEXT_V2_METADATA_HPP
#define ZARRBITS_TEXT_V2_METADATA_HPP

#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>
#include <string_view>

namespace zarrbits::text {

// Zarr v2 cannot have this array. what() says why, as the end of a sentence.
struct not_representable_in_v2 : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct v2_array {
  json zarray, zattrs;
};

// `gaps`: whether chunks are missing, which read as the fill value. xarray takes the fill value of Zarr v2 for the missing value
// of CF, so it is null, or what the attribute `_FillValue` says; an array with gaps that read as something else has no form.
v2_array to_v2_array(const json& node, bool gaps);
json v2_group_attributes(const json& node);

// Whether it is a key of Zarr v2's metadata: ".zgroup", "a/.zarray", "a/.zattrs", ".zmetadata".
bool is_v2_metadata_key(std::string_view key);

}  // namespace zarrbits::text

#endif
