// SPDX-License-Identifier: BSL-1.0
//
// bzip2: one stream, as filter 307 stores it and as numcodecs' bz2 has it.
//
#ifndef ZARRBITS_COMPRESSION_BZIP2_HPP
#define ZARRBITS_COMPRESSION_BZIP2_HPP

#include "compression/chunk_bytes.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

buffer undo_bzip2(std::span<const std::byte> in, std::size_t size);
// Only the stream knows its decoded size; more than `most` bytes is damage.
buffer undo_bzip2_up_to(std::span<const std::byte> in, std::size_t most);

buffer bzip2_stream(std::span<const std::byte> bytes, int level);

}  // namespace zarrbits::compressors

#endif
