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
// Longer than `bytes` if these have no repetitions, which every decoder takes, and never as long: libhdf5, which stores such a
// chunk without the filter when it writes it again, says so in the file only if its size changes.
buffer lzf_block(std::span<const std::byte> bytes);

}  // namespace zarrbits::compressors

#endif
