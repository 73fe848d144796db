// SPDX-License-Identifier: BSL-1.0
//
// Chooses the table of kernels. The choice is kept in constant-initialised atomics, not in a static variable with a constructor:
// the HDF5 plugins have no C++ runtime. Two threads that call it first at the same time choose the same table.
//
#include "core/kernels/kernels.hpp"

#ifdef ZARRBITS_X86_KERNELS
#include <cpuid.h>
#endif

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace zarrbits::detail {

namespace {

// slowest to fastest; a machine that can run one can run those before it
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

#ifdef ZARRBITS_X86_KERNELS
// 1: neither, 2: AVX2, 3: AVX-512 as well. Asks the processor itself: __builtin_cpu_supports() needs a part of the compiler's
// run-time library that ziglang's lacks (it then answers no to everything), and this code goes into plugins without one.
std::size_t x86_level() noexcept {
  const auto is_set = [](unsigned word, unsigned bit) { return (word >> bit & 1u) != 0; };
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !is_set(c, 27) || !is_set(c, 28)) return 1;  // OSXSAVE, AVX
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));  // the registers that the system saves
  if ((low & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !is_set(b, 5)) return 1;
  // F, BW, VL; VBMI, VBMI2, GFNI
  const bool avx512 =
      (low & 0xE6) == 0xE6 && is_set(b, 16) && is_set(b, 30) && is_set(b, 31) && is_set(c, 1) && is_set(c, 6) && is_set(c, 8);
  return avx512 ? 3 : 2;
}
#endif

std::size_t available() noexcept {
#ifdef ZARRBITS_X86_KERNELS
  __builtin_cpu_init();  // for prefetch_pays()
  return x86_level();
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
