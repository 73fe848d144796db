// SPDX-License-Identifier: BSL-1.0
//
// Zstandard: one frame, as filter 32015 stores it and as Zarr's zstd has it.
//
#ifndef ZARRBITS_COMPRESSORS_ZSTD_HPP
#define ZARRBITS_COMPRESSORS_ZSTD_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

// Decodes a frame of exactly `out.size()` bytes. Throws corrupt_chunk.
void zstd_block(std::span<const std::byte> in, std::span<std::byte> out);
buffer decompress_zstd(std::span<const std::byte> in, std::size_t size);
// Consecutive frames of unknown size. `likely_size`: that of a sound chunk, or 0. Throws limit_exceeded for more than `max_size`
// bytes, truncated_chunk, and corrupt_chunk with zstd's reason.
buffer decompress_zstd_up_to(std::span<const std::byte> in, std::size_t likely_size, std::size_t max_size);
// The size that the frame declares; one of the largest numbers if it declares none, or is not a frame.
std::size_t zstd_size(std::span<const std::byte> in);

// Checks that this is one complete frame that declares `size` bytes; false if it declares none. Does not decode the content.
// Throws corrupt_chunk.
bool check_zstd(std::span<const std::byte> in, std::size_t size);

buffer zstd_frame(std::span<const std::byte> bytes, int level);
void append_zstd_frame(buffer& out, std::span<const std::byte> bytes, int level);
// The size of the largest frame of so many bytes.
std::size_t max_zstd_size(std::size_t size);

}  // namespace zarrbits::compressors

#endif
