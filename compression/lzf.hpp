// SPDX-License-Identifier: BSL-1.0
//
// LZF, as filter 32000 (h5py) stores it.
//
#ifndef ZARRBITS_COMPRESSION_LZF_HPP
#define ZARRBITS_COMPRESSION_LZF_HPP

#include "compression/chunk_bytes.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

// `size`: upper limit of the decoded size. Throws damaged_chunk.
buffer undo_lzf(std::span<const std::byte> in, std::size_t size);

}  // namespace zarrbits::compressors

#endif
