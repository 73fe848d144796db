// SPDX-License-Identifier: BSL-1.0
//
// Common helpers to read a zarr.json.
//
#ifndef ZARRBITS_ZARR_READ_ZARR_JSON_HPP
#define ZARRBITS_ZARR_READ_ZARR_JSON_HPP

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace zarrbits::zarr {

// For messages, and for the core, which reads JSON as text. A function, so that the JSON writer, a template, is compiled once.
std::string json_text(const nlohmann::json& j);

// All below throw store_error.

std::vector<std::uint64_t> extents(const nlohmann::json& list, const char* key);

// The name and configuration of a codec, a chunk grid, a key encoding: an object, or the bare name.
std::string parse_extension(const nlohmann::json& j, nlohmann::json& configuration);

const nlohmann::json& require_key(const nlohmann::json& j, const char* key);

}  // namespace zarrbits::zarr

#endif
