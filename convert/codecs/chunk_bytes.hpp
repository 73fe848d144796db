// SPDX-License-Identifier: BSL-1.0
//
// What all codecs take and give.
//
#ifndef ZARRBITS_CONVERT_CODECS_CHUNK_BYTES_HPP
#define ZARRBITS_CONVERT_CODECS_CHUNK_BYTES_HPP

#include <cstddef>
#include <stdexcept>
#include <vector>

namespace zarrbits::conversion {

using buffer = std::vector<std::byte>;

// A chunk that is not what its filters say. what() is a reason, not a sentence.
struct damaged_chunk : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace zarrbits::conversion

#endif
