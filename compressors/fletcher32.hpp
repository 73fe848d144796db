// SPDX-License-Identifier: BSL-1.0
//
// Fletcher's checksum of 32 bits at the end of a chunk, as HDF5 and numcodecs have it.
//
#ifndef ZARRBITS_COMPRESSORS_FLETCHER32_HPP
#define ZARRBITS_COMPRESSORS_FLETCHER32_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace zarrbits::compressors {

std::uint32_t fletcher32(std::span<const std::byte> bytes);
// Checks and removes the 4 bytes of the checksum. Throws corrupt_chunk.
void drop_fletcher32(buffer& chunk);
void append_fletcher32(buffer& chunk);

}  // namespace zarrbits::compressors

#endif
