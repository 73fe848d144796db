// SPDX-License-Identifier: BSL-1.0
#include "command/heap.hpp"

#include <algorithm>
#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace zarrbits::command {

void tune_heap([[maybe_unused]] std::uint64_t memory) {
#ifdef __GLIBC__
  constexpr std::uint64_t largest = 32 << 20;  // that M_MMAP_THRESHOLD takes
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(std::min(memory / 8, 4 * largest)));
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(std::min(memory / 16, largest)));
#endif
}

}  // namespace zarrbits::command
