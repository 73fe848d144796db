// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_TESTS_SUPPORT_MARGIN_BUFFER_HPP
#define ZARRBITS_TESTS_SUPPORT_MARGIN_BUFFER_HPP

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

// Memory at any offset from a cache line, with a margin of bytes that must stay as they are.
class margin_buffer {
 public:
  std::span<std::byte> at(std::size_t offset, std::size_t size) {
    begin_ = margin + offset;
    size_ = size;
    std::fill(bytes_.begin(), bytes_.end(), std::byte{0xc3});
    return {bytes_.data() + begin_, size};
  }
  bool intact() const {
    const auto other = [](std::byte b) { return b != std::byte{0xc3}; };
    return std::none_of(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_), other) &&
           std::none_of(bytes_.begin() + static_cast<std::ptrdiff_t>(begin_ + size_), bytes_.end(), other);
  }

 private:
  static constexpr std::size_t margin = 128;
  struct alignas(64) line {
    std::byte bytes[64];
  };
  std::vector<line> lines_ = std::vector<line>(2 * margin / 64 + 1 + 257 * 8 / 64 + 1);
  std::span<std::byte> bytes_{lines_.front().bytes, lines_.size() * 64};
  std::size_t begin_ = 0, size_ = 0;
};

#endif
