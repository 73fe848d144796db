// SPDX-License-Identifier: BSL-1.0
//
// Bytes in separate pages, between two guard pages. They are never in the heap, where a bug elsewhere could copy them into a
// store; they are not in a core file, and are wiped when they are released.
//
#ifndef ZARRBITS_IO_SECRET_BYTES_HPP
#define ZARRBITS_IO_SECRET_BYTES_HPP

#include <cstddef>
#include <string_view>
#include <utility>

namespace zarrbits::conversion {

class secret_bytes {
 public:
  secret_bytes() = default;
  explicit secret_bytes(std::size_t capacity);  // throws std::bad_alloc
  explicit secret_bytes(std::string_view copied);
  secret_bytes(secret_bytes&& other) noexcept { swap(other); }
  secret_bytes& operator=(secret_bytes&& other) noexcept {
    secret_bytes(std::move(other)).swap(*this);
    return *this;
  }
  ~secret_bytes();

  char* data() noexcept { return data_; }
  const char* data() const noexcept { return data_; }
  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t size() const noexcept { return size_; }
  void resize(std::size_t n) noexcept { size_ = n; }  // at most the capacity
  void append(std::string_view text);                 // throws std::length_error
  std::string_view view() const noexcept { return {data_, size_}; }
  bool empty() const noexcept { return size_ == 0; }

 private:
  void swap(secret_bytes& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(size_, other.size_);
  }
  char* data_ = nullptr;
  std::size_t capacity_ = 0, size_ = 0;
};

// Overwrites memory that is not read again.
void wipe(void* memory, std::size_t size) noexcept;

}  // namespace zarrbits::conversion

#endif
