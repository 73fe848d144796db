// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/joined_parts.hpp"

#include <algorithm>

namespace zarrbits::conversion {

std::size_t joined_parts::first_over(std::uint64_t position) const {
  const auto part =
      std::partition_point(list.begin(), list.end(), [&](const joined_part& p) { return p.first + p.count <= position; });
  return static_cast<std::size_t>(part - list.begin());
}

bool joined_parts::has_gaps() const {
  std::uint64_t end = stored_count();
  for (const joined_part& p : list) {
    if (p.first != end) return true;
    end += p.count;
  }
  return end != length;
}

}  // namespace zarrbits::conversion
