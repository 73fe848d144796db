// SPDX-License-Identifier: BSL-1.0
//
// Decodes libhdf5's scaleoffset within bounds, for the reason in nbit.hpp.
//
#ifndef ZARRBITS_COMPRESSION_SCALEOFFSET_HPP
#define ZARRBITS_COMPRESSION_SCALEOFFSET_HPP

#include "compression/chunk_bytes.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

// `values`: the filter's parameters; `size`: of the decoded chunk. Throws damaged_chunk.
buffer undo_scaleoffset(std::span<const unsigned> values, buffer in, std::size_t size);

}  // namespace zarrbits::compressors

#endif
