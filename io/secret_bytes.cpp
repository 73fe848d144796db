// SPDX-License-Identifier: BSL-1.0
#include "io/secret_bytes.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

namespace zarrbits::conversion {

namespace {

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

void wipe(void* memory, std::size_t size) noexcept {
  volatile auto* at = static_cast<unsigned char*>(memory);
  for (std::size_t i = 0; i < size; ++i) at[i] = 0;
}

secret_bytes::secret_bytes(std::size_t capacity) {
  const std::size_t inner = (std::max<std::size_t>(capacity, 1) + page_size() - 1) / page_size() * page_size();
  void* all = ::mmap(nullptr, inner + 2 * page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) throw std::bad_alloc();
  char* const first = static_cast<char*>(all) + page_size();
  if (::mprotect(first, inner, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(all, inner + 2 * page_size());
    throw std::bad_alloc();
  }
#ifdef MADV_DONTDUMP
  ::madvise(first, inner, MADV_DONTDUMP);
#endif
  data_ = first;
  capacity_ = inner;
}

secret_bytes::secret_bytes(std::string_view copied) : secret_bytes(copied.size()) { append(copied); }

secret_bytes::~secret_bytes() {
  if (!data_) return;
  wipe(data_, capacity_);
  ::munmap(data_ - page_size(), capacity_ + 2 * page_size());
}

void secret_bytes::append(std::string_view text) {
  if (text.size() > capacity_ - size_) throw std::length_error("secret_bytes");
  if (!text.empty()) std::memcpy(data_ + size_, text.data(), text.size());
  size_ += text.size();
}

}  // namespace zarrbits::conversion
