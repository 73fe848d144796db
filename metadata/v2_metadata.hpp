// SPDX-License-Identifier: BSL-1.0
//
// Zarr v2's metadata of nodes whose zarr.json (Zarr v3) is given. The bytes of chunks are the same in both.
//
//   const v2_array a = to_v2_array(node, false);
//   a.zarray;  // {"zarr_format": 2, "shape": .., "dtype": "<i4", "filters": [..], ..}
//   a.zattrs;  // with "_ARRAY_DIMENSIONS", which xarray needs
//
#ifndef ZARRBITS_METADATA_V2_METADATA_HPP
#define ZARRBITS_METADATA_V2_METADATA_HPP

#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace zarrbits::metadata {

// Zarr v2 cannot have this array. what() says why, as the end of a sentence.
struct not_representable_in_v2 : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct v2_array {
  text::json zarray, zattrs;
};

// `gaps`: whether chunks are missing, which read as the fill value. xarray takes the fill value of Zarr v2 for the missing value
// of CF, so it is null, or what the attribute `_FillValue` says; an array with gaps that read as something else has no form.
v2_array to_v2_array(const text::json& node, bool gaps);
text::json v2_group_attributes(const text::json& node);

// .zgroup, and .zmetadata of these metadata objects.
text::json v2_group();
text::json v2_consolidated(const std::map<std::string, text::json>& documents);

// A .zarray with extents alone, from which fsspec counts the chunks of an array of Zarr v3. A rectilinear grid has its number of
// chunks as the shape.
text::json v2_grid_alone(const text::json& node);
bool is_v2_grid_alone(const text::json& zarray);

// Whether it is a key of Zarr v2's metadata: ".zgroup", "a/.zarray", "a/.zattrs", ".zmetadata".
bool is_v2_metadata_key(std::string_view key);

}  // namespace zarrbits::metadata

#endif
