// SPDX-License-Identifier: BSL-1.0
//
// The inner loops. One table per instruction set; `kernels()` is the one chosen for this machine. All tables do the same: the
// portable one is the reference, and a conformance suite holds the others against it.
//
// Arrays of functions are indexed by log2 of the component's size: 0 for 1 byte to 3 for 8 bytes. Components are in this machine's
// byte order, without alignment. Any n from 0; no byte outside the n components and ceil(n * bits / 8) encoded bytes is touched.
//
#ifndef ZARRBITS_CORE_KERNELS_HPP
#define ZARRBITS_CORE_KERNELS_HPP

#include "core/packing.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::detail {

struct kernel_table {
  const char* name;

  // Copies n components with the bytes of each reversed ([0]: just copies). `in` and `out` may be equal.
  void (*swap[4])(const std::byte* in, std::byte* out, std::size_t n) noexcept;

  // True if encode() would lose nothing of any of the n components (and no bool is neither 0 nor 1).
  bool (*check[4])(const packing& p, const std::byte* in, std::size_t n) noexcept;

  // Keeps p.bits bits of each component from p.first_bit; no check. `out` may be `in`.
  void (*pack[4])(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;

  // The reverse: bits back to first_bit, sign or zeros above (p.zero_above: zeros from type_bits on).
  void (*unpack[4])(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;

  // bits == 1, first_bit == 0, size 1: a byte that is not zero becomes the bit 1; p.msb_first says from which end.
  void (*pack_bool)(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
  void (*unpack_bool)(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;

  // `whole` components of one byte with fewer bits than 8: upper bits replaced by the sign or zeros. `out` may be `in`.
  void (*extend)(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
};

// The portable table: 64-bit words, any CPU, any byte order.
extern const kernel_table portable_kernels;

// The table for this machine, chosen once.
const kernel_table& kernels() noexcept;

// Every table that this machine can run, the portable one first.
std::span<const kernel_table* const> all_kernels() noexcept;

constexpr unsigned log2_size(unsigned size) noexcept { return size == 8 ? 3 : size >> 1; }

}  // namespace zarrbits::detail

#endif
