// SPDX-License-Identifier: BSL-1.0
//
// LZ4: blocks, as filter 32004 frames them, and as numcodecs does.
//
#ifndef ZARRBITS_COMPRESSION_LZ4_HPP
#define ZARRBITS_COMPRESSION_LZ4_HPP

#include "compression/chunk_bytes.hpp"

#include <cstddef>
#include <optional>
#include <span>

namespace zarrbits::conversion {

// One block, of exactly `out.size()` bytes. Throws damaged_chunk.
void lz4_block(std::span<const std::byte> in, std::span<std::byte> out);

// Filter 32004: the length, the block length, and blocks, with all lengths big-endian. Throws damaged_chunk.
buffer undo_lz4(std::span<const std::byte> in, std::size_t size);
std::size_t lz4_size(std::span<const std::byte> in);  // the declared size

// numcodecs' frame: the length in 4 bytes, little-endian, and one block.
buffer numcodecs_lz4(std::span<const std::byte> bytes);
// The same from a chunk of filter 32004, if it is a single block, whose bytes are kept; empty if there are several, or it is not
// compressed.
std::optional<buffer> numcodecs_lz4_of(std::span<const std::byte> in, std::size_t size);

}  // namespace zarrbits::conversion

#endif
