// SPDX-License-Identifier: BSL-1.0
//
// The types of bytes and errors that all codecs share.
//
#ifndef ZARRBITS_COMPRESSORS_BUFFER_HPP
#define ZARRBITS_COMPRESSORS_BUFFER_HPP

#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

namespace zarrbits::compressors {

// New bytes without a value stay uninitialized: their maker writes all of a chunk, and to fill it with zeros first takes as long
// as a copy. Code that needs zeros says so: buffer(n, std::byte{0}).
template <class T>
struct default_init_allocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = default_init_allocator<U>;
  };
  void construct(T* p) noexcept { ::new (static_cast<void*>(p)) T; }
};
using buffer = std::vector<std::byte, default_init_allocator<std::byte>>;

// A chunk that its filters cannot have made. what() is a reason, not a sentence.
struct corrupt_chunk : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// One that ends too early.
struct truncated_chunk : corrupt_chunk {
  using corrupt_chunk::corrupt_chunk;
};
// More decoded bytes than the caller allows.
struct limit_exceeded : corrupt_chunk {
  using corrupt_chunk::corrupt_chunk;
};

}  // namespace zarrbits::compressors

#endif
