// SPDX-License-Identifier: BSL-1.0
//
// Bitshuffle, as filter 32008 stores it: bits transposed in blocks, then nothing, LZ4 or Zstandard.
//
#ifndef ZARRBITS_COMPRESSORS_BITSHUFFLE_HPP
#define ZARRBITS_COMPRESSORS_BITSHUFFLE_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

// `values`: the filter's parameters. Throws corrupt_chunk.
buffer decode_bitshuffle(std::span<const unsigned> values, std::span<const std::byte> in, std::size_t size);
buffer encode_bitshuffle(std::span<const unsigned> values, std::span<const std::byte> in);
// False if the compression inside is unknown.
bool is_supported_bitshuffle(std::span<const unsigned> values);
std::size_t bitshuffle_size(std::span<const unsigned> values, std::span<const std::byte> in);  // the declared size

}  // namespace zarrbits::compressors

#endif
