// SPDX-License-Identifier: BSL-1.0
//
// Chunks that are compressed as it is planned.
//
#ifndef ZARRBITS_CONVERT_RUN_COMPRESS_HPP
#define ZARRBITS_CONVERT_RUN_COMPRESS_HPP

#include "convert/plan/compression.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::conversion {

// `typesize`: bytes of one number; 1 where that says nothing. Throws damaged_chunk where the chunk is larger than it can be.
buffer compress(const compression& c, buffer bytes, std::size_t typesize);
// The same of bytes that are kept.
buffer compressed(const compression& c, std::span<const std::byte> bytes, std::size_t typesize);
// Chunks under native_codecs(), from their values.
buffer apply_native(const pipeline& p, buffer values, std::size_t typesize);

}  // namespace zarrbits::conversion

#endif
