// SPDX-License-Identifier: BSL-1.0
//
// The number of threads that a call makes if it is not told.
//
#ifndef ZARRBITS_DETAIL_PROCESSORS_HPP
#define ZARRBITS_DETAIL_PROCESSORS_HPP

#include <zarrbits/detail/requirements.hpp>

#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace zarrbits::detail {

// Processors that this process may use: batch systems and containers often allow a part of those of the machine. At least 1.
inline unsigned usable_processors() noexcept {
#ifdef CPU_COUNT
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return static_cast<unsigned>(CPU_COUNT(&set));
#endif
  const unsigned processors = std::thread::hardware_concurrency();
  return processors != 0 ? processors : 1;
}

}  // namespace zarrbits::detail

#endif
