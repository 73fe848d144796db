// SPDX-License-Identifier: BSL-1.0
#include "io/remote_url.hpp"

#include <zarrbits/error.hpp>
#include <zarrbits/source_name.hpp>

#include <sys/stat.h>

namespace zarrbits {

source_name split_source(const std::string& text) {
  const auto split_at = [&](std::size_t colon) -> source_name {
    std::string object = text.substr(colon + 1);
    while (object.size() > 1 && object.ends_with('/')) object.pop_back();
    return {text.substr(0, colon), object == "/" ? "" : object};
  };
  if (io::is_object_store(text)) {  // no request asks which keys exist
    const std::size_t colon = text.find(":/", text.find("://") + 3);
    return colon == std::string::npos ? source_name{text, {}} : split_at(colon);
  }
  if (io::is_web(text)) {
    const std::string name = io::redact_url(text);
    const std::size_t colon = io::object_in_url(name);
    if (colon == std::string::npos) return {name, {}};
    const source_name parts = split_at(io::object_in_url(text));
    return {name.substr(0, colon), parts.object};
  }
  struct stat info {};
  const auto exists = [&](const std::string& name) { return ::stat(name.c_str(), &info) == 0; };
  if (!exists(text)) {
    for (std::size_t colon = text.find(":/"); colon != std::string::npos; colon = text.find(":/", colon + 1)) {
      const std::string name = text.substr(0, colon);
      if (!exists(name)) continue;
      // a folder is a Zarr store
      if (!S_ISDIR(info.st_mode) || exists(name + "/zarr.json") || exists(name + "/.zgroup")) return split_at(colon);
    }
  }
  return {text, {}};
}

}  // namespace zarrbits
