// SPDX-License-Identifier: BSL-1.0
//
// Memory with unreadable pages right before and right behind it: a single byte outside ends the test.
//
#ifndef ZARRBITS_TESTS_SUPPORT_GUARDED_BUFFER_HPP
#define ZARRBITS_TESTS_SUPPORT_GUARDED_BUFFER_HPP

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <stdexcept>

class guarded_buffer {
 public:
  explicit guarded_buffer(std::size_t capacity) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    body_ = (capacity + page_ - 1) / page_ * page_;
    void* p = mmap(nullptr, body_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::runtime_error("mmap failed");
    base_ = static_cast<std::byte*>(p);
    if (mprotect(base_ + page_, body_, PROT_READ | PROT_WRITE) != 0) throw std::runtime_error("mprotect failed");
  }
  guarded_buffer(const guarded_buffer&) = delete;
  guarded_buffer& operator=(const guarded_buffer&) = delete;
  ~guarded_buffer() { munmap(base_, body_ + 2 * page_); }

  // `size` bytes that begin right behind the first guard page, or end right before the second one.
  std::span<std::byte> front(std::size_t size) { return {base_ + page_, size}; }
  std::span<std::byte> back(std::size_t size) { return {base_ + page_ + body_ - size, size}; }

 private:
  std::size_t page_, body_ = 0;
  std::byte* base_ = nullptr;
};

#endif
