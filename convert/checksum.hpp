// SPDX-License-Identifier: BSL-1.0
//
// CRC-32C, as in Zarr's codec crc32c.
//
#ifndef ZARRBITS_CONVERT_CHECKSUM_HPP
#define ZARRBITS_CONVERT_CHECKSUM_HPP

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zarrbits::conversion {

std::uint32_t crc32c(std::span<const std::byte> bytes);

// What the codec does to a chunk, and the codec itself.
void append_crc32c(std::vector<std::byte>& chunk);
void append_crc32c_codec(nlohmann::ordered_json& codecs);

}  // namespace zarrbits::conversion

#endif
