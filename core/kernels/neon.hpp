// SPDX-License-Identifier: BSL-1.0
//
// The common part of the NEON kernels. Every 64-bit ARM has NEON, so there is no check at run time.
//
// A kernel is a *step*, as with AVX2: a class that keeps tables in registers, loads whole vectors, and turns them into the output
// bytes that belong to them. encode_steps() and decode_steps() repeat it while it stays inside the given memory, and do the rest
// through buffers on the stack.
//
#ifndef ZARRBITS_CORE_KERNELS_NEON_HPP
#define ZARRBITS_CORE_KERNELS_NEON_HPP

#include "core/kernels/kernels.hpp"

#ifdef ZARRBITS_NEON_KERNELS

#include <arm_neon.h>

#include <algorithm>
#include <cstring>

#define ZARRBITS_NEON_INLINE __attribute__((always_inline)) inline

namespace zarrbits::detail::neon {

using encode_function = bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
using decode_function = void(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
using swap_function = void(const std::byte* in, std::byte* out, std::size_t n) noexcept;
swap_function swap16, swap32, swap64;
encode_function encode8, encode8_any, encode16, encode_bool;  // _any: 3, 5, 6, 7 bits
decode_function decode8, decode8_any, decode16, decode_bool;

// Fewer components than this go to the portable kernels, which need no setup.
inline constexpr std::size_t few = 32;

ZARRBITS_NEON_INLINE uint8x16_t load(const void* at) noexcept { return vld1q_u8(static_cast<const std::uint8_t*>(at)); }
ZARRBITS_NEON_INLINE void store(std::byte* at, uint8x16_t v) noexcept { vst1q_u8(reinterpret_cast<std::uint8_t*>(at), v); }
ZARRBITS_NEON_INLINE uint8x16_t broadcast8(std::uint64_t value) noexcept { return vdupq_n_u8(static_cast<std::uint8_t>(value)); }
ZARRBITS_NEON_INLINE uint8x16_t broadcast16(std::uint64_t value) noexcept {
  return vreinterpretq_u8_u16(vdupq_n_u16(static_cast<std::uint16_t>(value)));
}

// Shift counts of 8-bit lanes; negative ones shift right.
ZARRBITS_NEON_INLINE int8x16_t count8(int n) noexcept { return vdupq_n_s8(static_cast<std::int8_t>(n)); }
ZARRBITS_NEON_INLINE int16x8_t count16(int n) noexcept { return vdupq_n_s16(static_cast<std::int16_t>(n)); }

// Encodes n components by steps of the class Step, and returns true if nothing was lost. A step has: components (number that it
// takes), bytes_in, bytes_out() (at most 16, and 16 are stored). It collects in `seen` what lossless() decides from. `out` may be
// `in`: a step stores nothing beyond what it has loaded.
template <class Step>
bool encode_steps(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const Step s(p);
  uint8x16_t seen = vdupq_n_u8(0);
  constexpr std::size_t i = Step::bytes_in;
  const std::size_t o = s.bytes_out(), size = n / 8 * p.bits + (n % 8 * p.bits + 7) / 8;
  std::size_t inside = size < 16 ? 0 : std::min(n / Step::components, (size - 16) / o + 1);
  std::size_t rest = n - inside * Step::components;
  for (; inside >= 4; inside -= 4, in += 4 * i, out += 4 * o) {
    s(in, out, seen);
    s(in + i, out + o, seen);
    s(in + 2 * i, out + 2 * o, seen);
    s(in + 3 * i, out + 3 * o, seen);
  }
  for (; inside != 0; --inside, in += i, out += o) s(in, out, seen);
  while (rest != 0) {
    std::byte from[i] = {}, to[16];
    const std::size_t now = std::min(rest, Step::components);
    std::memcpy(from, in, now * p.size);
    s(from, to, seen);
    std::memcpy(out, to, (now * p.bits + 7) / 8);
    rest -= now;
    in += i;
    out += o;
  }
  return s.lossless(seen);
}

// Decodes n components. A step has: components, bytes_in() (at most 16, and 16 are loaded), bytes_out.
template <class Step>
void decode_steps(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const Step s(p);
  constexpr std::size_t o = Step::bytes_out;
  const std::size_t i = s.bytes_in(), size = n / 8 * p.bits + (n % 8 * p.bits + 7) / 8;
  std::size_t inside = size < 16 ? 0 : std::min(n / Step::components, (size - 16) / i + 1);
  std::size_t rest = n - inside * Step::components;
  for (; inside >= 4; inside -= 4, in += 4 * i, out += 4 * o) {
    s(in, out);
    s(in + i, out + o);
    s(in + 2 * i, out + 2 * o);
    s(in + 3 * i, out + 3 * o);
  }
  for (; inside != 0; --inside, in += i, out += o) s(in, out);
  while (rest != 0) {
    std::byte from[16] = {}, to[o];
    const std::size_t now = std::min(rest, Step::components);
    std::memcpy(from, in, (now * p.bits + 7) / 8);
    s(from, to);
    std::memcpy(out, to, now * p.size);
    rest -= now;
    in += i;
    out += o;
  }
}

}  // namespace zarrbits::detail::neon

#endif

#endif
