// SPDX-License-Identifier: BSL-1.0
//
// LZ4: blocks, as filter 32004 frames them, and as numcodecs does.
//
#ifndef ZARRBITS_COMPRESSORS_LZ4_HPP
#define ZARRBITS_COMPRESSORS_LZ4_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <optional>
#include <span>

namespace zarrbits::compressors {

// One block, of exactly `out.size()` bytes. Throws corrupt_chunk.
void lz4_block(std::span<const std::byte> in, std::span<std::byte> out);
// Appends a block. Throws corrupt_chunk for 2 GiB and more.
void append_lz4_block(buffer& out, std::span<const std::byte> bytes);

// Filter 32004: the length, the block length, and blocks, with all lengths big-endian. Throws corrupt_chunk.
buffer decompress_lz4(std::span<const std::byte> in, std::size_t size);
std::size_t lz4_size(std::span<const std::byte> in);  // the declared size

// numcodecs' frame: the length in 4 bytes, little-endian, and one block.
// Throws limit_exceeded if it declares more than `max_size` bytes, and corrupt_chunk.
buffer decompress_lz4_numcodecs_frame(std::span<const std::byte> in, std::size_t max_size);
buffer lz4_numcodecs_frame(std::span<const std::byte> bytes);
// Such a frame from a chunk of filter 32004 of a single block, whose bytes are kept; empty if the chunk has several blocks, or is
// not compressed.
std::optional<buffer> lz4_hdf5_to_numcodecs(std::span<const std::byte> in, std::size_t size);
// A chunk of filter 32004 from numcodecs' frame, whose block is kept; empty if it does not fit in one of the filter's blocks, or
// would be taken for bytes that are not compressed. Throws corrupt_chunk if the frame does not declare `size` bytes.
std::optional<buffer> lz4_numcodecs_to_hdf5(std::span<const std::byte> in, std::size_t size);
// The bytes as a chunk of filter 32004 of one block.
buffer lz4_hdf5_frame(std::span<const std::byte> bytes);

}  // namespace zarrbits::compressors

#endif
