// SPDX-License-Identifier: BSL-1.0
//
// Shuffle: groups bytes by their position in the element. A partial element at the end is not moved.
//
#ifndef ZARRBITS_COMPRESSORS_SHUFFLE_HPP
#define ZARRBITS_COMPRESSORS_SHUFFLE_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

buffer shuffled(buffer in, std::size_t element);
buffer unshuffle(buffer in, std::size_t element);
// `out` has the length of `in`, and does not overlap it.
void shuffle(std::span<const std::byte> in, std::byte* out, std::size_t element);
void unshuffle(std::span<const std::byte> in, std::byte* out, std::size_t element);

}  // namespace zarrbits::compressors

#endif
