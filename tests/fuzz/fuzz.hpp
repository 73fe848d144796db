// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_TESTS_FUZZ_FUZZ_HPP
#define ZARRBITS_TESTS_FUZZ_FUZZ_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace fuzz {

inline void require(bool held, const char* what) {
  if (held) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace fuzz

#endif
