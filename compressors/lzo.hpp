// SPDX-License-Identifier: BSL-1.0
//
// LZO1X, as filter 305 (PyTables) stores it. The only other decoder, liblzo2, is under the GPL, which not every user of this
// library can accept.
//
#ifndef ZARRBITS_COMPRESSORS_LZO_HPP
#define ZARRBITS_COMPRESSORS_LZO_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

// A chunk of filter 305: one stream. If the filter's parameters say so (all PyTables since 2003), the Adler-32 and the length of
// the decoded bytes follow; both are checked. Throws corrupt_chunk.
buffer decompress_lzo(std::span<const std::byte> in, std::size_t size);
// Like decompress_lzo(), for an unknown size: at most `max_size` bytes.
buffer decompress_lzo_up_to(std::span<const std::byte> in, std::size_t max_size);

}  // namespace zarrbits::compressors

#endif
