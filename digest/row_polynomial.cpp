// SPDX-License-Identifier: BSL-1.0
#include "digest/row_polynomial.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace zarrbits::digesting {

namespace {

// A sum of products of 128 bits.
struct wide_sum {
  residue low = 0;
  std::uint64_t carry = 0;
  void add(residue product) noexcept { carry += __builtin_add_overflow(low, product, &low) ? 1U : 0U; }
  residue reduced() const noexcept { return digesting::add(reduce(low), residue{carry} << 1); }
};

// Multiplied by 2^64: 2^127 is 1, so bits move around.
residue shift_64(residue a) noexcept { return (a << 64 & prime) | a >> 63; }

std::uint64_t load_word(const std::byte* p) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

}  // namespace

row_polynomial::row_polynomial(const lanes& points) {
  for (unsigned lane = 0; lane < lane_count; ++lane) {
    residue x = 1;
    for (std::size_t k = 0; k < block_words; ++k) {
      low_[lane][k] = static_cast<std::uint64_t>(x);
      high_[lane][k] = static_cast<std::uint64_t>(x >> 64);
      x = multiply(x, points[lane]);
    }
    next_[lane] = x;
  }
}

lanes row_polynomial::block(const std::byte* words, std::size_t count) const noexcept {
  wide_sum low0, high0, low1, high1;
  for (std::size_t k = 0; k < count; ++k) {
    const residue word = load_word(words + 8 * k);
    low0.add(word * low_[0][k]);
    high0.add(word * high_[0][k]);
    low1.add(word * low_[1][k]);
    high1.add(word * high_[1][k]);
  }
  return {add(low0.reduced(), shift_64(high0.reduced())), add(low1.reduced(), shift_64(high1.reduced()))};
}

lanes row_polynomial::evaluate(std::span<const std::byte> bytes, std::size_t shift) const noexcept {
  lanes sum{0, 0}, factor{1, 1};
  std::byte partial[8 * block_words];
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), 8 * block_words - shift), count = (shift + n + 7) / 8;
    const std::byte* words = bytes.data();
    if (shift > 0 || n % 8 > 0) {
      std::memset(partial, 0, shift);
      std::memcpy(partial + shift, bytes.data(), n);
      std::memset(partial + shift + n, 0, 8 * count - shift - n);
      words = partial;
    }
    const lanes value = block(words, count);
    bytes = bytes.subspan(n);
    shift = 0;
    for (unsigned lane = 0; lane < lane_count; ++lane) {
      sum[lane] = add(sum[lane], factor[lane] == 1 ? value[lane] : multiply(value[lane], factor[lane]));
      if (!bytes.empty()) factor[lane] = multiply(factor[lane], next_[lane]);
    }
  }
  return sum;
}

}  // namespace zarrbits::digesting
