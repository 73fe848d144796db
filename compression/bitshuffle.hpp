// SPDX-License-Identifier: BSL-1.0
//
// Bitshuffle, as filter 32008 stores it: bits transposed in blocks, then nothing, LZ4 or Zstandard.
//
#ifndef ZARRBITS_COMPRESSION_BITSHUFFLE_HPP
#define ZARRBITS_COMPRESSION_BITSHUFFLE_HPP

#include "compression/chunk_bytes.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

// `values`: the filter's parameters. Throws damaged_chunk.
buffer undo_bitshuffle(std::span<const unsigned> values, std::span<const std::byte> in, std::size_t size);
// False if the compression inside is unknown.
bool knows_bitshuffle(std::span<const unsigned> values);
std::size_t bitshuffle_size(std::span<const unsigned> values, std::span<const std::byte> in);  // the declared size

}  // namespace zarrbits::compressors

#endif
