// SPDX-License-Identifier: BSL-1.0
//
// Decodes libhdf5's nbit within bounds: libhdf5's own decoder trusts the parameters of the file, and reads beyond the end of a
// chunk that is too short.
//
#ifndef ZARRBITS_COMPRESSORS_NBIT_HPP
#define ZARRBITS_COMPRESSORS_NBIT_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

// `values`: the filter's parameters; `size`: of the decoded chunk. Throws corrupt_chunk.
buffer decode_nbit(std::span<const unsigned> values, buffer in, std::size_t size);

}  // namespace zarrbits::compressors

#endif
