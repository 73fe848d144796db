// SPDX-License-Identifier: BSL-1.0
//
// Shuffle: the bytes of elements by their place in the element. A last part of an element stays where it is.
//
#ifndef ZARRBITS_CONVERT_CODECS_SHUFFLE_HPP
#define ZARRBITS_CONVERT_CODECS_SHUFFLE_HPP

#include "convert/codecs/chunk_bytes.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::conversion {

buffer shuffled(buffer in, std::size_t element);
buffer unshuffle(buffer in, std::size_t element);
// `out` has the length of `in`, and does not overlap it.
void unshuffle(std::span<const std::byte> in, std::byte* out, std::size_t element);

}  // namespace zarrbits::conversion

#endif
