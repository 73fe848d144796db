// SPDX-License-Identifier: BSL-1.0
//
// The inner loops. One table per instruction set; `kernels()` is the one chosen for this machine. All tables give the same
// results: the portable one is the reference, and a conformance suite compares the others with it.
//
// Arrays of functions are indexed by log2 of the component's size: 0 for 1 byte to 3 for 8 bytes. Components are in this
// machine's byte order, without alignment. n may be 0; no byte outside the n components and ceil(n * bits / 8) encoded bytes is
// touched. Encoders and decoders require fewer bits than the component has (otherwise it is a copy), and ignore `swap_memory`.
//
#ifndef ZARRBITS_CORE_KERNELS_KERNELS_HPP
#define ZARRBITS_CORE_KERNELS_KERNELS_HPP

#include "core/packing.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace zarrbits::detail {

struct kernel_table {
  const char* name;

  // Copies n components with the bytes of each reversed ([0]: just copies). `in` and `out` may be equal.
  void (*swap[4])(const std::byte* in, std::byte* out, std::size_t n) noexcept;

  // Keeps p.bits bits of each component from p.first_bit. False if a component lost anything (see `loss`); the output is then
  // unspecified, because the dropped bits of a component may have got into its neighbours. `out` may be `in`.
  bool (*encode[4])(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;

  // The reverse: moves bits back to first_bit, with sign or zeros above (p.zero_above: zeros from type_bits on).
  void (*decode[4])(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;

  // Likewise for bool: bits == 1, first_bit == 0, size 1; p.msb_first gives the bit order in a byte. Encode returns false if a
  // byte is neither 0 nor 1; with nonzero_is_true it never does, and any byte that is not zero becomes the bit 1.
  bool (*encode_bool)(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
  void (*decode_bool)(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;

  // True if encode would lose nothing of any of the n components: checks all that encode checks, and also both forms of a
  // negative number whose type has fewer bits than its component, which encode does not.
  bool (*check[4])(const packing& p, const std::byte* in, std::size_t n) noexcept;

  // For `full_width` components of one byte with fewer bits than 8: replaces upper bits by the sign or zeros. `out` may be `in`.
  void (*extend)(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
};

// The portable table: 64-bit words, any CPU, any byte order.
extern ZARRBITS_API const kernel_table portable_kernels;

// Its functions, for tables that replace only some of them. T is the unsigned integer of a component's size.
namespace portable {
template <class T>
void swap(const std::byte* in, std::byte* out, std::size_t n) noexcept;
template <class T>
bool encode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
template <class T>
void decode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
template <class T>
bool check(const packing& p, const std::byte* in, std::size_t n) noexcept;
bool encode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
void decode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
void extend(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
}  // namespace portable

#if defined(__x86_64__)
#define ZARRBITS_X86_KERNELS 1
extern const kernel_table avx2_kernels;
extern const kernel_table avx512_kernels;
#elif defined(__aarch64__) && !defined(__AARCH64EB__)
#define ZARRBITS_NEON_KERNELS 1
extern const kernel_table neon_kernels;
#endif

// The table for this machine, chosen at the first call: the best one, or the one that the environment variable ZARRBITS_KERNELS
// names. Never fails: an unavailable name is ignored.
ZARRBITS_API const kernel_table& kernels() noexcept;

// The value of ZARRBITS_KERNELS at the first call of kernels() if it is not available here, or null. A caller that can report it
// should.
const char* unavailable_kernels() noexcept;

// Every table that this machine can run, portable first, best last.
std::span<const kernel_table* const> all_kernels() noexcept;

// The table of this name, or null if this machine can run no such table.
const kernel_table* kernels_by_name(const char* name) noexcept;

// The names of all existing tables, even those that this machine cannot run.
std::span<const char* const> kernel_names() noexcept;

constexpr unsigned log2_size(unsigned size) noexcept { return size == 8 ? 3 : size >> 1; }

constexpr std::uint64_t low_bits(unsigned n) noexcept { return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1; }

// True if encode checks what it drops. If all bits are kept, nothing can be lost.
constexpr bool is_checked(const packing& p) noexcept { return p.is_bool ? !p.nonzero_is_true : p.partial() && !p.truncate; }

// Possible bits of decoded components: none below first_bit, and with zero_above none above the type.
constexpr std::uint64_t possible_bits(const packing& p) noexcept {
  return low_bits(p.zero_above ? p.type_bits : 8u * p.size) & ~low_bits(p.first_bit);
}

// How encode detects that a component x loses something: (x + bias) & dropped is not zero. The test is the same for all
// components, so the sums can be or-ed and tested once. A signed component is right if all bits above the kept ones equal the
// highest kept one; adding that bit turns them into zeros, and a carry that leaves the component. Truncating encode drops nothing
// in this sense.
struct loss {
  std::uint64_t bias = 0, dropped = 0;
};

constexpr loss what_is_lost(const packing& p) noexcept {
  if (!is_checked(p)) return {};
  const std::uint64_t dropped = low_bits(8u * p.size) & ~(low_bits(p.bits) << p.first_bit);
  return {p.is_signed ? std::uint64_t{1} << (p.first_bit + p.bits - 1) : 0, dropped};
}

}  // namespace zarrbits::detail

#endif
