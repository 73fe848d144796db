// SPDX-License-Identifier: BSL-1.0
#include "compressors/fletcher32.hpp"

#include <algorithm>

namespace zarrbits::compressors {

std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  std::uint32_t a = 0, b = 0;
  std::size_t words = bytes.size() / 2, offset = 0;
  const auto fold = [](std::uint32_t v) { return (v & 0xFFFF) + (v >> 16); };
  while (words) {
    std::size_t n = std::min<std::size_t>(words, 360);
    words -= n;
    for (; n; --n, offset += 2) {
      a += std::to_integer<std::uint32_t>(bytes[offset]) << 8 | std::to_integer<std::uint32_t>(bytes[offset + 1]);
      b += a;
    }
    a = fold(a);
    b = fold(b);
  }
  if (bytes.size() % 2) {
    a += std::to_integer<std::uint32_t>(bytes.back()) << 8;
    b += a;
    a = fold(a);
    b = fold(b);
  }
  return fold(b) << 16 | fold(a);
}

void drop_fletcher32(buffer& chunk) {
  if (chunk.size() < 4) throw corrupt_chunk("fletcher32: shorter than its checksum");
  const std::size_t n = chunk.size() - 4;
  std::uint32_t stored = 0;
  for (unsigned i = 0; i < 4; ++i) stored |= std::to_integer<std::uint32_t>(chunk[n + i]) << (8 * i);
  const std::uint32_t sum = fletcher32(std::span(chunk).first(n));
  // HDF5 before 1.6.3 swapped the bytes of each half on little-endian machines
  const std::uint32_t older = (sum & 0x00FF00FF) << 8 | (sum & 0xFF00FF00) >> 8;
  if (stored != sum && stored != older) throw corrupt_chunk("fletcher32: the checksum is wrong");
  chunk.resize(n);
}

void append_fletcher32(buffer& chunk) {
  const std::uint32_t sum = fletcher32(chunk);
  for (unsigned i = 0; i < 4; ++i) chunk.push_back(static_cast<std::byte>(sum >> (8 * i)));
}

}  // namespace zarrbits::compressors
