// SPDX-License-Identifier: BSL-1.0
//
// The zarr.json (Zarr v3) of nodes whose metadata of Zarr v2 are given: the other way round of v2_metadata.hpp. What v3 has no
// name for keeps its own, which readers of v3 refuse.
//
//   const text::json node = v3_array_of(zarray, zattrs, remarks);
//
#ifndef ZARRBITS_METADATA_FROM_V2_HPP
#define ZARRBITS_METADATA_FROM_V2_HPP

#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace zarrbits::metadata {

// zarr.json of an array, and of a group. `zattrs` may be null. All throw parse_error or nlohmann::json::exception.
text::json v3_array_of(const text::json& zarray, const text::json& zattrs, std::vector<detail::attribute_remark>& remarks);
text::json v3_group_of(const text::json& zgroup, const text::json& zattrs);
// The nodes in a .zmetadata, which has the metadata objects by their keys: zarr.json by path, without the root.
text::json v3_nodes_of(const text::json& zmetadata);

}  // namespace zarrbits::metadata

#endif
