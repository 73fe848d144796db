// SPDX-License-Identifier: BSL-1.0
//
// Decodes libhdf5's nbit within bounds: libhdf5's own decoder trusts the parameters of the file, and reads beyond the end of a
// chunk that is too short.
//
#ifndef ZARRBITS_COMPRESSION_NBIT_HPP
#define ZARRBITS_COMPRESSION_NBIT_HPP

#include "compression/chunk_bytes.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

// `values`: the filter's parameters; `size`: of the decoded chunk. Throws damaged_chunk.
buffer undo_nbit(std::span<const unsigned> values, buffer in, std::size_t size);

}  // namespace zarrbits::compressors

#endif
