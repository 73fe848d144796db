// SPDX-License-Identifier: BSL-1.0
#include "text/closest_match.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace zarrbits::text {

namespace {

// Letters to insert, remove or replace, or neighbours to exchange, that turn one into the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> previous, row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) next[j] = std::min(next[j], previous[j - 2] + 1);
    }
    previous = std::exchange(row, next);
  }
  return row[b.size()];
}

}  // namespace

std::string closest_match(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr std::size_t longest = 64;  // of names that a user may have meant to type
  std::string best;
  if (name.size() > longest) return best;
  std::size_t fewest = std::max<std::size_t>(1, (name.size() + 1) / 4) + 1;
  for (const std::string& k : candidates) {
    const bool begins = name.size() >= 4 && k.starts_with(name);
    const std::size_t n = begins ? 1 : edit_distance(name, k);
    if (n < fewest) {
      fewest = n;
      best = k;
    }
  }
  return best;
}

}  // namespace zarrbits::text
