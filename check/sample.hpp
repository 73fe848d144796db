// SPDX-License-Identifier: BSL-1.0
//
// A random part of a list, the same for the same seed.
//
//   take_sample(chunks, 0.01, random);   // at least one of them, in their order
//
#ifndef ZARRBITS_CHECK_SAMPLE_HPP
#define ZARRBITS_CHECK_SAMPLE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace zarrbits::checking {

// Its sequence is the same everywhere; that of the distributions of <random> is not.
using random_numbers = std::mt19937_64;

template <class T>
void take_sample(std::vector<T>& list, double share, random_numbers& random) {
  if (share >= 1 || list.empty()) return;
  std::size_t left = std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(share * static_cast<double>(list.size()))));
  std::size_t kept = 0;
  for (std::size_t i = 0; i < list.size() && left > 0; ++i) {
    if (random() % (list.size() - i) >= left) continue;
    list[kept++] = list[i];
    --left;
  }
  list.resize(kept);
}

}  // namespace zarrbits::checking

#endif
