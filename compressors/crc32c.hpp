// SPDX-License-Identifier: BSL-1.0
//
// CRC-32C, as in Zarr's codec crc32c.
//
#ifndef ZARRBITS_COMPRESSORS_CRC32C_HPP
#define ZARRBITS_COMPRESSORS_CRC32C_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace zarrbits::compressors {

// `initial`: the sum of the bytes before these.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t initial = 0);

// Encodes a chunk with the codec.
void append_crc32c(buffer& chunk);

}  // namespace zarrbits::compressors

#endif
