// SPDX-License-Identifier: BSL-1.0
#include "compressors/fletcher32.hpp"

#include <algorithm>

namespace zarrbits::compressors {

namespace {

std::uint32_t fold(std::uint32_t v) { return (v & 0xFFFF) + (v >> 16); }

std::uint32_t big_endian_word(const std::byte* p) {
  return std::to_integer<std::uint32_t>(p[0]) << 8 | std::to_integer<std::uint32_t>(p[1]);
}

constexpr std::size_t sum_lanes = 8, sum_steps = 32, summed_words = sum_lanes * sum_steps;  // words; their sums fit in 32 bits

// Adds a block of words to the sums: `a` of its words, `b` of all values that `a` has on the way. Each lane has every eighth word
// and sums of its own, so that the compiler adds eight at a time.
void add_words(const std::byte* p, std::uint32_t& a, std::uint32_t& b) {
  std::uint32_t words[sum_lanes] = {}, sums[sum_lanes] = {};
  for (std::size_t step = 0; step < sum_steps; ++step, p += 2 * sum_lanes) {
    for (std::size_t i = 0; i < sum_lanes; ++i) {
      words[i] += big_endian_word(p + 2 * i);
      sums[i] += words[i];
    }
  }
  b += static_cast<std::uint32_t>(summed_words) * a;
  for (std::size_t i = 0; i < sum_lanes; ++i) {
    a += words[i];
    b += static_cast<std::uint32_t>(sum_lanes) * sums[i] - static_cast<std::uint32_t>(i) * words[i];
  }
}

}  // namespace

std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  std::uint32_t a = 0, b = 0;
  std::size_t words = bytes.size() / 2;
  const std::byte* p = bytes.data();
  for (; words >= summed_words; words -= summed_words, p += 2 * summed_words) {
    add_words(p, a, b);
    a = fold(a);
    b = fold(b);
  }
  for (; words > 0; --words, p += 2) {
    a += big_endian_word(p);
    b += a;
  }
  a = fold(a);
  b = fold(b);
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
