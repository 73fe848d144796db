// SPDX-License-Identifier: BSL-1.0
//
// Decodes libhdf5's scaleoffset within bounds, for the reason in nbit.hpp.
//
#ifndef ZARRBITS_COMPRESSORS_SCALEOFFSET_HPP
#define ZARRBITS_COMPRESSORS_SCALEOFFSET_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

// `values`: the filter's parameters; `size`: of the decoded chunk. Throws corrupt_chunk.
buffer decode_scaleoffset(std::span<const unsigned> values, buffer in, std::size_t size);

}  // namespace zarrbits::compressors

#endif
