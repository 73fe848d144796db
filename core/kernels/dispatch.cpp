// SPDX-License-Identifier: BSL-1.0
//
// Which table. The choice is kept in constant-initialised atomics, not in a static variable with a constructor: the HDF5 plugins
// have no C++ runtime. Two threads that come first at once choose the same.
//
#include "core/kernels/kernels.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace zarrbits::detail {

namespace {

// from the slowest to the fastest; whoever can run one can run those before it
constexpr const kernel_table* tables[] = {
    &portable_kernels,
#ifdef ZARRBITS_X86_KERNELS
    &avx2_kernels,
    &avx512_kernels,
#endif
#ifdef ZARRBITS_NEON_KERNELS
    &neon_kernels,
#endif
};

constexpr const char* names[] = {"portable", "avx2", "avx512", "neon"};

std::size_t available() noexcept {
#ifdef ZARRBITS_X86_KERNELS
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2")) return 1;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
                      __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("gfni");
  return avx512 ? 3 : 2;
#else
  return std::size(tables);  // 64-bit ARM always has NEON
#endif
}

constinit std::atomic<const kernel_table*> chosen{nullptr};
constinit std::atomic<const char*> unavailable{nullptr};

}  // namespace

std::span<const kernel_table* const> all_kernels() noexcept { return {tables, available()}; }

std::span<const char* const> kernel_names() noexcept { return names; }

const kernel_table* kernels_by_name(const char* name) noexcept {
  for (const kernel_table* k : all_kernels())
    if (std::strcmp(k->name, name) == 0) return k;
  return nullptr;
}

const kernel_table& kernels() noexcept {
  if (const kernel_table* k = chosen.load(std::memory_order_acquire)) return *k;
  const kernel_table* best = all_kernels().back();
  if (const char* name = std::getenv("ZARRBITS_KERNELS"); name && *name != '\0') {
    if (const kernel_table* k = kernels_by_name(name)) best = k;
    else unavailable.store(name, std::memory_order_relaxed);
  }
  chosen.store(best, std::memory_order_release);
  return *best;
}

const char* unavailable_kernels() noexcept {
  kernels();
  return unavailable.load(std::memory_order_relaxed);
}

}  // namespace zarrbits::detail
