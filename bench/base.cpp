// SPDX-License-Identifier: BSL-1.0
//
// The base for peers.py: seconds of this thread's CPU time for `calls` times memcpy.
//
#include <cstddef>
#include <cstring>
#include <ctime>

extern "C" double zarrbits_bench_memcpy(void* out, const void* in, std::size_t bytes, int calls) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  for (int i = 0; i < calls; ++i) {
    std::memcpy(out, in, bytes);
    asm volatile("" ::: "memory");
  }
  return now() - start;
}
