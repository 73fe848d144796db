// SPDX-License-Identifier: BSL-1.0
//
// bzip2: one stream, as filter 307 stores it and as numcodecs' bz2 has it.
//
#ifndef ZARRBITS_COMPRESSORS_BZIP2_HPP
#define ZARRBITS_COMPRESSORS_BZIP2_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

buffer decompress_bzip2(std::span<const std::byte> in, std::size_t size);
// Only the stream knows its decoded size; more than `max_size` bytes is damage.
buffer decompress_bzip2_up_to(std::span<const std::byte> in, std::size_t max_size);
// Consecutive streams, as Python's bz2 reads them. Throws limit_exceeded for more than `max_size` bytes, and corrupt_chunk.
buffer decompress_bzip2_streams_up_to(std::span<const std::byte> in, std::size_t max_size);

buffer bzip2_stream(std::span<const std::byte> bytes, int level);

}  // namespace zarrbits::compressors

#endif
