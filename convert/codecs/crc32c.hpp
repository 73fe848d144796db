// SPDX-License-Identifier: BSL-1.0
//
// CRC-32C, as in Zarr's codec crc32c.
//
#ifndef ZARRBITS_CONVERT_CODECS_CRC32C_HPP
#define ZARRBITS_CONVERT_CODECS_CRC32C_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zarrbits::conversion {

std::uint32_t crc32c(std::span<const std::byte> bytes);

// What the codec does to a chunk.
void append_crc32c(std::vector<std::byte>& chunk);

}  // namespace zarrbits::conversion

#endif
