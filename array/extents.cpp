// SPDX-License-Identifier: BSL-1.0
#include "array/extents.hpp"

namespace zarrbits::array {

std::uint64_t saturating_mul(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t n = 0;
  return __builtin_mul_overflow(a, b, &n) ? UINT64_MAX : n;
}

std::uint64_t product(std::span<const std::uint64_t> numbers) noexcept {
  std::uint64_t n = 1;
  for (const std::uint64_t number : numbers) n = saturating_mul(n, number);
  return n;
}

extents strides_of(std::span<const std::uint64_t> shape) {
  extents strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = saturating_mul(strides[d], shape[d]);
  return strides;
}

std::uint64_t ravel(std::span<const std::uint64_t> index, std::span<const std::uint64_t> shape) noexcept {
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < index.size(); ++d) number = number * shape[d] + index[d];
  return number;
}

extents unravel(std::uint64_t number, std::span<const std::uint64_t> shape) {
  extents index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = number % shape[d];
    number /= shape[d];
  }
  return index;
}

std::string joined_text(const extents& numbers, char separator) {
  std::string text;
  for (const std::uint64_t n : numbers) text += (text.empty() ? std::string() : std::string(1, separator)) + std::to_string(n);
  return text;
}

}  // namespace zarrbits::array
