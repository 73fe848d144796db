// SPDX-License-Identifier: BSL-1.0
#include "io/reference_v2.hpp"

#include "metadata/node.hpp"
#include "metadata/v2_metadata.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace zarrbits::io {

void v2_references::node(const std::string& key, std::string_view text) {
  text::json node = text::parse_untrusted_json(text);
  const std::string path = path_of_node(key);
  if (metadata::is_array(node)) arrays_.add(path, node);
  nodes_.insert_or_assign(path, std::move(node));
}

void v2_references::chunk(const std::string& key) {
  if (const auto* const array = arrays_.find_array(key)) ++chunks_[array->first];
}

std::string v2_references::only_v3() const {
  const auto converted = documents();
  for (const auto& [path, node] : nodes_) {
    if (metadata::is_array(node) && !converted.contains(path.empty() ? ".zarray" : path + "/.zarray")) return "/" + path;
  }
  return {};
}

std::map<std::string, text::json> v2_references::documents() const {
  std::map<std::string, text::json> result;
  bool consolidated = false;
  for (const auto& [path, node] : nodes_) {
    if (!node.is_object()) continue;
    const std::string prefix = path.empty() ? "" : path + "/";
    if (!metadata::is_array(node)) {
      result[prefix + ".zgroup"] = metadata::v2_group();
      result[prefix + ".zattrs"] = metadata::v2_group_attributes(node);
      consolidated = consolidated || (path.empty() && !metadata::consolidated_metadata_of(node).is_null());
      continue;
    }
    const auto it = chunks_.find(path);
    std::uint64_t grid = 1;
    bool gaps = false;
    for (const std::uint64_t n : arrays_.counts_of(path)) gaps = __builtin_mul_overflow(grid, n, &grid) || gaps;
    gaps = gaps || grid != (it == chunks_.end() ? 0 : it->second);
    try {
      metadata::v2_array array = metadata::to_v2_array(node, gaps);
      result[prefix + ".zarray"] = std::move(array.zarray);
      result[prefix + ".zattrs"] = std::move(array.zattrs);
    } catch (const metadata::not_representable_in_v2&) {  // the report says why
    }
  }
  if (consolidated) result[".zmetadata"] = metadata::v2_consolidated(result);
  return result;
}

}  // namespace zarrbits::io
