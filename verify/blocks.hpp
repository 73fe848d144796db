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

// Saturates at the largest number, too.
inline std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a + std::min(b, ~a); }

// Calls f(start, count) for blocks of at most `max_elements` elements, consecutive in C order. f returns false to stop.
template <class F>
bool for_each_block(const std::vector<std::uint64_t>& start, const std::vector<std::uint64_t>& count, std::uint64_t max_elements,
                    F&& f) {
  const std::size_t rank = start.size();
  if (product(count) == 0) return true;
  // dimensions from `split` + 1 on are taken whole, `split` in steps, the ones before it one by one
  std::size_t split = rank;
  std::uint64_t inner = 1;
  while (split > 0 && inner <= max_elements / count[split - 1]) inner *= count[--split];
  if (split == 0) return f(start, count);
  --split;
  const std::uint64_t step = std::max<std::uint64_t>(1, max_elements / inner);
  std::vector<std::uint64_t> offset(rank, 0);
  while (true) {
    std::vector<std::uint64_t> block_start(rank), size(rank);
    for (std::size_t i = 0; i < rank; ++i) {
      block_start[i] = start[i] + offset[i];
      size[i] = i < split ? 1 : i == split ? std::min(step, count[i] - offset[i]) : count[i];
    }
    if (!f(block_start, size)) return false;
    offset[split] += step;
    std::size_t i = split;
    while (offset[i] >= count[i]) {
      offset[i] = 0;
      if (i == 0) return true;
      ++offset[--i];
    }
  }
}

}  // namespace zarrbits::verification

#endif
