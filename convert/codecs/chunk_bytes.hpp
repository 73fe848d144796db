// SPDX-License-Identifier: BSL-1.0
//
// What all codecs take and give.
//
#ifndef ZARRBITS_CONVERT_CODECS_CHUNK_BYTES_HPP
#define ZARRBITS_CONVERT_CODECS_CHUNK_BYTES_HPP

#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

namespace zarrbits::conversion {

// Bytes that are added without a value have none yet: chunks are written whole by what makes them, and to write zeros first takes
// as long as to copy them. Where zeros are meant, they are said: buffer(n, std::byte{0}).
template <class T>
struct without_zeros : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = without_zeros<U>;
  };
  void construct(T* p) noexcept { ::new (static_cast<void*>(p)) T; }
};
using buffer = std::vector<std::byte, without_zeros<std::byte>>;

// A chunk that is not what its filters say. what() is a reason, not a sentence.
struct damaged_chunk : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace zarrbits::conversion

#endif
