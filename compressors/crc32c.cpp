// SPDX-License-Identifier: BSL-1.0
#include "compressors/crc32c.hpp"

#include <array>

namespace zarrbits::compressors {

namespace {

// tables[k][b]: the effect of byte b on the sum when k bytes follow it, so that eight bytes can be added at once.
using table = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr table make_tables() {
  table t{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t v = b;
    for (int bit = 0; bit < 8; ++bit) v = v >> 1 ^ (v & 1 ? 0x82F63B78 : 0);
    t[0][b] = v;
  }
  for (std::size_t k = 1; k < t.size(); ++k) {
    for (std::size_t b = 0; b < 256; ++b) t[k][b] = t[k - 1][b] >> 8 ^ t[0][t[k - 1][b] & 0xFF];
  }
  return t;
}

constexpr table tables = make_tables();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t initial) {
  std::uint32_t sum = ~initial;
  const auto byte_at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    sum ^= byte_at(0) | byte_at(1) << 8 | byte_at(2) << 16 | byte_at(3) << 24;
    sum = tables[7][sum & 0xFF] ^ tables[6][sum >> 8 & 0xFF] ^ tables[5][sum >> 16 & 0xFF] ^ tables[4][sum >> 24] ^
          tables[3][byte_at(4)] ^ tables[2][byte_at(5)] ^ tables[1][byte_at(6)] ^ tables[0][byte_at(7)];
  }
  for (const std::byte b : bytes) sum = sum >> 8 ^ tables[0][(sum ^ std::to_integer<std::uint32_t>(b)) & 0xFF];
  return ~sum;
}

void append_crc32c(buffer& chunk) {
  const std::uint32_t sum = crc32c(chunk);
  chunk.reserve(chunk.size() + 4);  // not twice its size
  for (unsigned i = 0; i < 4; ++i) chunk.push_back(static_cast<std::byte>(sum >> (8 * i)));
}

}  // namespace zarrbits::compressors
