// SPDX-License-Identifier: BSL-1.0
#include "io/store_kind.hpp"

#include "io/remote_url.hpp"

#include <string_view>

namespace zarrbits::io {

store_kind kind_of_target(const std::string& target) {
  if (is_object_store(target)) return store_kind::object_store;
  if (is_web(target)) return store_kind::web;
  std::string_view name = target;
  const auto has_extension = [&](std::string_view extension) {
    return name.size() > extension.size() && name.ends_with(extension);
  };
  if (has_extension(".zip")) return store_kind::zip;
  if (has_extension(".json")) return store_kind::json;
  while (name.size() > 1 && name.ends_with('/')) name.remove_suffix(1);  // of a folder
  return has_extension(".parquet") ? store_kind::parquet : store_kind::directory;
}

}  // namespace zarrbits::io
