// SPDX-License-Identifier: BSL-1.0
#include "bench/limits.hpp"

#include "bench/harness.hpp"

#include <cstdint>
#include <cstring>

namespace zarrbits::bench {

namespace {

#if defined(__x86_64__)
#define ZARRBITS_BENCH_WIDE __attribute__((target("avx2")))
constexpr std::size_t width = 32;
bool is_possible() { return __builtin_cpu_supports("avx2"); }
#else
#define ZARRBITS_BENCH_WIDE
constexpr std::size_t width = 16;
bool is_possible() { return true; }
#endif

using vector = std::uint64_t __attribute__((vector_size(width)));

// Everything read, nothing written.
ZARRBITS_BENCH_OPAQUE ZARRBITS_BENCH_WIDE bool read_all(const std::byte* in, std::size_t bytes) {
  vector sums[4] = {};
  for (; bytes != 0; bytes -= 4 * width, in += 4 * width)
    for (std::size_t i = 0; i < 4; ++i) {
      vector v;
      std::memcpy(&v, in + i * width, width);
      sums[i] |= v;
    }
  const vector all = (sums[0] | sums[1]) | (sums[2] | sums[3]);
  asm volatile("" : : "m"(all));  // it is needed
  return true;
}

// Everything written, nothing read.
ZARRBITS_BENCH_OPAQUE ZARRBITS_BENCH_WIDE bool write_all(std::byte* out, std::size_t bytes) {
  const vector v = {};
  for (; bytes != 0; bytes -= 4 * width, out += 4 * width)
    for (std::size_t i = 0; i < 4; ++i) {
      std::memcpy(out + i * width, &v, width);
      asm volatile("" ::: "memory");  // or gcc makes a memset() of it
    }
  return true;
}

ZARRBITS_BENCH_OPAQUE ZARRBITS_BENCH_WIDE bool copy_all(const std::byte* in, std::byte* out, std::size_t bytes) {
  for (; bytes != 0; bytes -= 4 * width, in += 4 * width, out += 4 * width)
    for (std::size_t i = 0; i < 4; ++i) {
      vector v;
      std::memcpy(&v, in + i * width, width);
      asm volatile("" ::: "memory");  // or gcc makes a memcpy() of it
      std::memcpy(out + i * width, &v, width);
    }
  return true;
}

}  // namespace

void register_limits() {
  if (!is_possible()) return;
  for (const std::size_t bytes : sizes()) {
    add({.name = "limit/read", .peer = "plain loop", .bytes = bytes},
        [=](row&) { return subject{.run = [=] { return read_all(decoded_buffer(), bytes); }}; });
    add({.name = "limit/write", .peer = "plain loop", .bytes = bytes},
        [=](row&) { return subject{.run = [=] { return write_all(other_buffer(), bytes); }}; });
    add({.name = "limit/copy", .peer = "plain loop", .bytes = bytes},
        [=](row&) { return subject{.run = [=] { return copy_all(decoded_buffer(), other_buffer(), bytes); }}; });
  }
}

}  // namespace zarrbits::bench
