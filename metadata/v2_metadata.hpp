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

#include <array>
#include <functional>
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
// For a copy, which has the chunks that references cannot have: a gap reads as the fill value only if .zarray says it, for null
// is undefined. It says "_FillValue" or, of an array without names of dimensions, which xarray does not open, the fill value.
v2_array to_v2_copy(const text::json& node, bool gaps);
// Whether chunks that are missing in a copy read as the fill value, so that they need not be written.
bool allows_gaps_in_v2(const text::json& node);
text::json v2_group_attributes(const text::json& node);

// .zgroup, and .zmetadata of these metadata objects.
text::json v2_group();
text::json v2_consolidated(const std::map<std::string, text::json>& documents);

// A .zarray with extents alone, from which fsspec counts the chunks of an array of Zarr v3. A rectilinear grid has its number of
// chunks as the shape.
text::json v2_grid_alone(const text::json& node);
bool is_v2_grid_alone(const text::json& zarray);

// The keys of a root's metadata: a folder with one of them is a store. The conversion writes the one that is not consolidated
// metadata last, and --overwrite removes all of them first.
inline constexpr std::array<const char*, 4> root_keys = {"zarr.json", ".zmetadata", ".zgroup", ".zarray"};
// Whether an object with this key makes a store of a folder that has all others.
bool completes_store(std::string_view key);
// Whether one of them is the root of a store of Zarr v3 or v2; `text_of`: what an object has, or "".
bool is_store_root(const std::function<std::string(const char* key)>& text_of);

// Whether it is a key of metadata, of Zarr v3 or v2.
bool is_metadata_key(std::string_view key);
// Whether it is a key of Zarr v2's metadata: ".zgroup", "a/.zarray", "a/.zattrs", ".zmetadata".
bool is_v2_metadata_key(std::string_view key);

}  // namespace zarrbits::metadata

#endif
