// SPDX-License-Identifier: BSL-1.0
//
// libhdf5's nbit, undone within bounds: its own decoder believes the parameters that the file names, and reads behind
// the end of a chunk that is too short.
//
#ifndef ZARRBITS_CONVERT_CODECS_NBIT_HPP
#define ZARRBITS_CONVERT_CODECS_NBIT_HPP

#include "convert/codecs/chunk_bytes.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::conversion {

// `values`: the filter's parameters; `size`: of the decoded chunk. Throws damaged_chunk.
buffer undo_nbit(std::span<const unsigned> values, buffer in, std::size_t size);

}  // namespace zarrbits::conversion

#endif
