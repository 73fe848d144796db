// SPDX-License-Identifier: BSL-1.0
//
// Extents and blocks of arrays, as `zarrbits verify` walks them.
//
#ifndef ZARRBITS_VERIFY_BLOCKS_HPP
#define ZARRBITS_VERIFY_BLOCKS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zarrbits::verification {

// The product; saturates at the largest number.
inline std::uint64_t product(const std::uint64_t* first, const std::uint64_t* last) {
  std::uint64_t p = 1;
  for (; first != last; ++first) {
    if (*first == 0) return 0;
    if (__builtin_mul_overflow(p, *first, &p)) p = UINT64_MAX;
  }
  return p;
}
inline std::uint64_t product(const std::vector<std::uint64_t>& v) { return product(v.data(), v.data() + v.size()); }

inline std::string join(const std::vector<std::uint64_t>& v) {
  std::string s = "[";
  for (std::size_t i = 0; i < v.size(); ++i) s += (i ? ", " : "") + std::to_string(v[i]);
  return s + "]";
}

// Calls f(start, count) for blocks of at most `most` elements, consecutive in C order. f returns false to stop.
template <class F>
bool for_blocks(const std::vector<std::uint64_t>& start, const std::vector<std::uint64_t>& count, std::uint64_t most, F&& f) {
  const std::size_t rank = start.size();
  if (product(count) == 0) return true;
  // dimensions from `split` + 1 on are taken whole, `split` in steps, the ones before it one by one
  std::size_t split = rank;
  std::uint64_t inner = 1;
  while (split > 0 && inner <= most / count[split - 1]) inner *= count[--split];
  if (split == 0) return f(start, count);
  --split;
  const std::uint64_t step = std::max<std::uint64_t>(1, most / inner);
  std::vector<std::uint64_t> at(rank, 0);
  while (true) {
    std::vector<std::uint64_t> from(rank), size(rank);
    for (std::size_t i = 0; i < rank; ++i) {
      from[i] = start[i] + at[i];
      size[i] = i < split ? 1 : i == split ? std::min(step, count[i] - at[i]) : count[i];
    }
    if (!f(from, size)) return false;
    at[split] += step;
    std::size_t i = split;
    while (at[i] >= count[i]) {
      at[i] = 0;
      if (i == 0) return true;
      ++at[--i];
    }
  }
}

}  // namespace zarrbits::verification

#endif
