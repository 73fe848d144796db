// SPDX-License-Identifier: BSL-1.0
#include "compressors/shuffle.hpp"

#include "compressors/simd16.hpp"

#include <algorithm>
#include <bit>

namespace zarrbits::compressors {

namespace {

constexpr std::size_t step = 16;  // elements that are transposed at once

// All of these return the number of transposed elements of n; the rest is too short for vectors.

// Elements of 2, 4 or 8 bytes: `size` vectors hold 16 of them.
template <unsigned size>
std::size_t unshuffle_vectors(const std::byte* in, std::byte* out, std::size_t n) {
  std::size_t i = 0;
  for (; i + step <= n; i += step) {
    bytes16 v[size];
    for (unsigned k = 0; k < size; ++k) v[k] = load16(in + k * n + i);
    zip<std::countr_zero(size)>(v);
    for (unsigned k = 0; k < size; ++k) store16(out + i * size + k * step, v[k]);
  }
  return i;
}

template <unsigned size>
std::size_t shuffle_vectors(const std::byte* in, std::byte* out, std::size_t n) {
  std::size_t i = 0;
  for (; i + step <= n; i += step) {
    bytes16 v[size];
    for (unsigned k = 0; k < size; ++k) v[k] = load16(in + i * size + k * step);
    zip<4>(v);
    for (unsigned k = 0; k < size; ++k) store16(out + k * n + i, v[k]);
  }
  return i;
}

// Elements of other sizes, in squares of 16 elements by 16 bytes; the last square may overlap the one before. If elements are
// shorter than a square, it writes over the following elements too: these are made later.
template <class Square>
std::size_t in_squares(std::size_t size, std::size_t n, Square square) {
  std::size_t i = 0;
  for (; i + step <= n && (i + step - 1) * size + 16 <= n * size; i += step) {
    for (std::size_t first = 0; first + 16 < size; first += 16) square(i, first);
    square(i, size > 16 ? size - 16 : 0);
  }
  return i;
}

std::size_t unshuffle_squares(const std::byte* in, std::byte* out, std::size_t size, std::size_t n) {
  return in_squares(size, n, [=, planes = std::min<std::size_t>(size, 16)](std::size_t i, std::size_t first) {
    bytes16 v[16] = {};
    for (std::size_t k = 0; k < planes; ++k) v[k] = load16(in + (first + k) * n + i);
    zip<4>(v);
    for (std::size_t k = 0; k < 16; ++k) store16(out + (i + k) * size + first, v[k]);
  });
}

std::size_t shuffle_squares(const std::byte* in, std::byte* out, std::size_t size, std::size_t n) {
  return in_squares(size, n, [=, planes = std::min<std::size_t>(size, 16)](std::size_t i, std::size_t first) {
    bytes16 v[16];
    for (std::size_t k = 0; k < 16; ++k) v[k] = load16(in + (i + k) * size + first);
    zip<4>(v);
    for (std::size_t k = 0; k < planes; ++k) store16(out + (first + k) * n + i, v[k]);
  });
}

bool is_noop(const buffer& in, std::size_t element) { return element <= 1 || in.size() < element; }

}  // namespace

void shuffle(std::span<const std::byte> in, std::byte* out, std::size_t size) {
  const std::size_t n = in.size() / size;
  const std::byte* from = in.data();
  std::size_t i = size == 2   ? shuffle_vectors<2>(from, out, n)
                  : size == 4 ? shuffle_vectors<4>(from, out, n)
                  : size == 8 ? shuffle_vectors<8>(from, out, n)
                              : shuffle_squares(from, out, size, n);
  for (; i < n; ++i) {
    for (std::size_t k = 0; k < size; ++k) out[k * n + i] = from[i * size + k];
  }
  std::copy(from + n * size, from + in.size(), out + n * size);
}

void unshuffle(std::span<const std::byte> in, std::byte* out, std::size_t size) {
  const std::size_t n = in.size() / size;
  const std::byte* from = in.data();
  std::size_t i = size == 2   ? unshuffle_vectors<2>(from, out, n)
                  : size == 4 ? unshuffle_vectors<4>(from, out, n)
                  : size == 8 ? unshuffle_vectors<8>(from, out, n)
                              : unshuffle_squares(from, out, size, n);
  for (; i < n; ++i) {
    for (std::size_t k = 0; k < size; ++k) out[i * size + k] = from[k * n + i];
  }
  std::copy(from + n * size, from + in.size(), out + n * size);
}

buffer shuffled(buffer in, std::size_t element) {
  if (is_noop(in, element)) return in;
  buffer out(in.size());
  shuffle(in, out.data(), element);
  return out;
}

buffer unshuffle(buffer in, std::size_t element) {
  if (is_noop(in, element)) return in;
  buffer out(in.size());
  unshuffle(in, out.data(), element);
  return out;
}

}  // namespace zarrbits::compressors
