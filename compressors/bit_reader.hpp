// SPDX-License-Identifier: BSL-1.0
//
// Bits of a stream, for nbit and scaleoffset.
//
#ifndef ZARRBITS_COMPRESSORS_BIT_READER_HPP
#define ZARRBITS_COMPRESSORS_BIT_READER_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace zarrbits::compressors {

// Reads consecutive numbers of any width, highest bit first.
class bit_reader {
 public:
  bit_reader(std::span<const std::byte> in, const char* codec) : in_(in), codec_(codec) {}

  unsigned byte(unsigned bits = 8) {  // up to 8
    if (bits > 8 * static_cast<std::uint64_t>(in_.size()) - position_)
      throw corrupt_chunk(std::string(codec_) + ": it ends too early");
    const auto i = static_cast<std::size_t>(position_ / 8);
    const auto shift = static_cast<unsigned>(position_ % 8);
    unsigned two = std::to_integer<unsigned>(in_[i]) << 8;
    if (shift + bits > 8) two |= std::to_integer<unsigned>(in_[i + 1]);
    position_ += bits;
    return (two >> (16 - shift - bits)) & ((1U << bits) - 1);
  }
  std::uint64_t number(unsigned bits) {  // up to 64
    std::uint64_t v = 0;
    for (; bits > 8; bits -= 8) v = v << 8 | byte();
    return bits ? v << bits | byte(bits) : v;
  }

 private:
  std::span<const std::byte> in_;
  const char* codec_;
  std::uint64_t position_ = 0;
};

}  // namespace zarrbits::compressors

#endif
