// SPDX-License-Identifier: BSL-1.0
//
// LZF, as filter 32000 (h5py) stores it.
//
#ifndef ZARRBITS_COMPRESSORS_LZF_HPP
#define ZARRBITS_COMPRESSORS_LZF_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

// `size`: upper limit of the decoded size. Throws corrupt_chunk.
buffer decompress_lzf(std::span<const std::byte> in, std::size_t size);

}  // namespace zarrbits::compressors

#endif
