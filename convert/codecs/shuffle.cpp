// SPDX-License-Identifier: BSL-1.0
#include "convert/codecs/shuffle.hpp"

#include <algorithm>

namespace zarrbits::conversion {

buffer shuffled(const buffer& in, std::size_t element) {
  if (element <= 1 || in.size() < element) return in;
  const std::size_t n = in.size() / element;
  buffer out(in);
  for (std::size_t b = 0; b < element; ++b) {
    for (std::size_t i = 0; i < n; ++i) out[b * n + i] = in[i * element + b];
  }
  return out;
}

buffer unshuffle(const buffer& in, std::size_t element) {
  if (element <= 1 || in.size() < element) return in;
  const std::size_t n = in.size() / element;
  buffer out(in.size());
  for (std::size_t b = 0; b < element; ++b) {
    for (std::size_t i = 0; i < n; ++i) out[i * element + b] = in[b * n + i];
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(n * element), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(n * element));
  return out;
}

}  // namespace zarrbits::conversion
