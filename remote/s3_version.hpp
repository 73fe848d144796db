// SPDX-License-Identifier: BSL-1.0
//
// A version of an object in S3, as fsspec names it: "s3://bucket/key?versionId=...".
//
#ifndef ZARRBITS_REMOTE_S3_VERSION_HPP
#define ZARRBITS_REMOTE_S3_VERSION_HPP

#include <cstddef>
#include <string>
#include <string_view>

namespace zarrbits::remote {

constexpr std::string_view version_parameter = "?versionId=";

// The position of "?versionId="; npos if the name has none, or nothing behind it.
inline std::size_t version_in(const std::string& name) {
  const std::size_t begin = name.starts_with("s3://") ? name.rfind(version_parameter) : std::string::npos;
  return begin == std::string::npos || begin + version_parameter.size() == name.size() ? std::string::npos : begin;
}

}  // namespace zarrbits::remote

#endif
