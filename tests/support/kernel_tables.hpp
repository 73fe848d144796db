// SPDX-License-Identifier: BSL-1.0
//
// The kernel tables that a test runs: all that this machine can, or the one that ZARRBITS_KERNELS names.
//
#ifndef ZARRBITS_TESTS_SUPPORT_KERNEL_TABLES_HPP
#define ZARRBITS_TESTS_SUPPORT_KERNEL_TABLES_HPP

#include "core/kernels/kernels.hpp"

#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>

inline std::span<const zarrbits::detail::kernel_table* const> tables_to_test() {
  const auto all = zarrbits::detail::all_kernels();
  const char* name = std::getenv("ZARRBITS_KERNELS");
  if (!name) return all;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (std::string(name) == all[i]->name) return all.subspan(i, 1);
  throw std::runtime_error("ZARRBITS_KERNELS is \"" + std::string(name) + "\", which this machine does not have");
}

#endif
