// SPDX-License-Identifier: BSL-1.0
//
// Vectors of 16 bytes. The compiler implements them with SSE2, NEON, or else plain registers.
//
#ifndef ZARRBITS_COMPRESSORS_SIMD16_HPP
#define ZARRBITS_COMPRESSORS_SIMD16_HPP

#include <cstddef>
#include <cstring>

namespace zarrbits::compressors {

using bytes16 = unsigned char __attribute__((vector_size(16)));

inline bytes16 load16(const std::byte* p) {
  bytes16 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline void store16(std::byte* p, bytes16 v) { std::memcpy(p, &v, sizeof v); }

// Interleaves the first, or the last, 8 bytes of both.
inline bytes16 zip_low(bytes16 a, bytes16 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline bytes16 zip_high(bytes16 a, bytes16 b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// Interleaves the first half of n vectors with the second, which rotates the index of a byte among the 16 * n by one bit. log2(n)
// rounds turn n planes of 16 elements into the elements; 4 rounds turn elements into planes.
template <unsigned rounds, unsigned n>
inline void zip(bytes16 (&v)[n]) {
  for (unsigned round = 0; round < rounds; ++round) {
    bytes16 zipped[n];
    for (unsigned i = 0; i < n / 2; ++i) {
      zipped[2 * i] = zip_low(v[i], v[i + n / 2]);
      zipped[2 * i + 1] = zip_high(v[i], v[i + n / 2]);
    }
    for (unsigned i = 0; i < n; ++i) v[i] = zipped[i];
  }
}

}  // namespace zarrbits::compressors

#endif
