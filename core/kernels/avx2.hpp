// SPDX-License-Identifier: BSL-1.0
//
// The common part of the AVX2 kernels. An attribute compiles each function for AVX2, so that one library runs on every CPU.
//
// A kernel is a *step*: a class that keeps tables in registers. It turns one or more vectors of input into the output bytes that
// belong to them, but loads and stores whole vectors. encode_steps() and decode_steps() repeat it while it stays inside the given
// memory, and let it do the rest in buffers on the stack.
//
#ifndef ZARRBITS_CORE_KERNELS_AVX2_HPP
#define ZARRBITS_CORE_KERNELS_AVX2_HPP

#include "core/kernels/kernels.hpp"

#ifdef ZARRBITS_X86_KERNELS

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

// prfchw: makes __builtin_prefetch() for writing a PREFETCHW, which every CPU with AVX2 has
#define ZARRBITS_AVX2 __attribute__((target("avx2,prfchw")))
#define ZARRBITS_AVX2_INLINE __attribute__((target("avx2,prfchw"), always_inline)) inline

namespace zarrbits::detail::avx2 {

// The kernels, for this table and for tables that replace only some of them.
using encode_function = bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
using decode_function = void(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept;
using check_function = bool(const packing& p, const std::byte* in, std::size_t n) noexcept;
using swap_function = void(const std::byte* in, std::byte* out, std::size_t n) noexcept;
swap_function swap16, swap32, swap64;
encode_function encode8, encode16, encode32, encode64, encode_bool;
decode_function decode8, decode16, decode32, decode64, decode_bool;
decode_function extend;
check_function check8, check16, check32, check64;

// What an encoder does with a component before it joins it with its neighbours. Checked unsigned components need no mask: every
// bit that a mask would remove is an error, and detected.
enum class before { look, look_and_shift, mask, shift_and_mask, look_signed, look_signed_and_shift };

constexpr bool shifts(before b) noexcept {
  return b == before::look_and_shift || b == before::shift_and_mask || b == before::look_signed_and_shift;
}
constexpr bool looks_signed(before b) noexcept { return b == before::look_signed || b == before::look_signed_and_shift; }
constexpr bool looks(before b) noexcept { return b != before::mask && b != before::shift_and_mask; }

template <before kind>
using constant = std::integral_constant<before, kind>;

// Calls `encode` with the preparation of these components as a type: encoders are compiled for each.
template <class Encode>
bool with_preparation(const packing& p, const Encode& encode) noexcept {
  const bool shift = p.first_bit != 0;
  const auto either = [&](auto shifted, auto as_it_is) { return shift ? encode(shifted) : encode(as_it_is); };
  if (!is_checked(p)) return either(constant<before::shift_and_mask>{}, constant<before::mask>{});
  if (p.is_signed) return either(constant<before::look_signed_and_shift>{}, constant<before::look_signed>{});
  return either(constant<before::look_and_shift>{}, constant<before::look>{});
}

// Fewer components than this go to the portable kernels, which need no setup.
inline constexpr std::size_t min_components = 32;

// Distance at which lines to be stored are prefetched (any distance from 256 to 2048 measured the same), if that pays: measured
// +8 to +11 % on Intel's servers with AVX-512 in swaps and most decoders, -2 to -5 % on AMD's Zen 5. Loads are prefetched too: up
// to +30 % on Cascade Lake.
inline constexpr std::size_t prefetch_distance = 1024;
inline bool prefetch_pays() noexcept { return __builtin_cpu_is("intel"); }

ZARRBITS_AVX2_INLINE __m256i load(const void* address) noexcept {
  return _mm256_loadu_si256(static_cast<const __m256i*>(address));
}

// A vpermd index: the lower half comes from the beginning of a vector, the upper half from its dword `high` on.
ZARRBITS_AVX2_INLINE __m256i dwords_from(unsigned high) noexcept {
  return _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3),
                          _mm256_inserti128_si256(_mm256_setzero_si256(), _mm_set1_epi32(static_cast<int>(high)), 1));
}

// For vectors that are used twice: a compiler may otherwise load them twice.
ZARRBITS_AVX2_INLINE __m256i load_once(const void* address) noexcept {
  __m256i x = load(address);
  asm("" : "+x"(x));
  return x;
}
ZARRBITS_AVX2_INLINE void store(void* address, __m256i v) noexcept { _mm256_storeu_si256(static_cast<__m256i*>(address), v); }

// Zeros. std::memset() becomes a string instruction, which takes longer than the rest of a short call.
template <std::size_t bytes>
ZARRBITS_AVX2_INLINE void zeros(std::byte* address) noexcept {
  for (std::size_t i = 0; i < bytes; i += 32) store(address + i, _mm256_setzero_si256());
}

ZARRBITS_AVX2_INLINE __m128i load_half(const void* address) noexcept {
  return _mm_loadu_si128(static_cast<const __m128i*>(address));
}

// Two halves from two places: vinserti128 from memory, which needs no shuffle port.
ZARRBITS_AVX2_INLINE __m256i load_halves(const void* low, const void* high) noexcept {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(low)), load_half(high), 1);
}
ZARRBITS_AVX2_INLINE void store_half(std::byte* address, __m256i v) noexcept {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(address), _mm256_castsi256_si128(v));
}
ZARRBITS_AVX2_INLINE void store_halves(std::byte* low, std::byte* high, __m256i v) noexcept {
  store_half(low, v);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(high), _mm256_extracti128_si256(v, 1));
}

// `value` in every lane of `width` bits.
template <unsigned width>
ZARRBITS_AVX2_INLINE __m256i broadcast(std::uint64_t value) noexcept {
  if constexpr (width == 8) return _mm256_set1_epi8(static_cast<char>(value));
  if constexpr (width == 16) return _mm256_set1_epi16(static_cast<short>(value));
  if constexpr (width == 32) return _mm256_set1_epi32(static_cast<int>(value));
  if constexpr (width == 64) return _mm256_set1_epi64x(static_cast<long long>(value));
}

ZARRBITS_AVX2_INLINE __m128i count(unsigned n) noexcept { return _mm_cvtsi32_si128(static_cast<int>(n)); }

// A stretch of whole steps.
struct stretch {
  const std::byte* in;
  std::byte* out;
  std::size_t steps;
};

// The number of first steps that stay inside `size` bytes, if each begins `stride` bytes after the one before and extends `reach`
// bytes. Only few steps do not; a division would take longer.
inline std::size_t steps_inside(std::size_t steps, std::size_t stride, std::size_t reach, std::size_t size) noexcept {
  for (std::size_t remaining = size - steps * stride; steps != 0 && remaining + stride < reach; remaining += stride) --steps;
  return steps;
}

// Prefetches what later steps will load, and the lines that they will store to.
template <class Step>
ZARRBITS_AVX2_INLINE void prefetch(stretch t, std::size_t distance) noexcept {
  for (std::size_t line = 0; line < Step::at_once * Step::vectors * 32; line += 64) __builtin_prefetch(t.in + distance + line);
  for (std::size_t line = 0; line < Step::at_once * Step::reach; line += 64) __builtin_prefetch(t.out + distance + line, 1);
}

// Encodes n components by steps of the class Step, and returns true if nothing was lost. A step has: components (number that it
// takes), vectors (their number), at_once (number of steps in a loop's body), bytes_in(), bytes_out(), reach (bytes from out on
// that it stores, at most 64). It receives what was seen before, and returns that or-ed with what it sees; lossless() decides
// from the result. `out` may be `in`: a step stores nothing beyond what it has loaded.
template <class Step>
ZARRBITS_AVX2 bool encode_steps(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const Step s(p);
  __m256i accumulated = _mm256_setzero_si256();
  const std::size_t i = s.bytes_in(), o = s.bytes_out(), size = n / 8 * p.bits + (n % 8 * p.bits + 7) / 8;
  const std::size_t steps = n / Step::components, rest = n % Step::components;
  const std::size_t inside = steps_inside(steps, o, Step::reach, size);
  // stores after the last steps, and loads after the last components, must not touch the caller's memory
  std::byte end[256], last[Step::components * 8];
  if (rest != 0) {
    for (std::size_t offset = 0; offset < i; offset += 32) zeros<32>(last + offset);
    std::memcpy(last, in + steps * i, rest * p.size);
  }
  const stretch stretches[] = {
      {in, out, inside}, {in + inside * i, end, steps - inside}, {last, end + (steps - inside) * o, rest != 0}};
  const std::size_t distance =
      prefetch_pays() ? prefetch_distance : 0;  // no branch: prefetching cached lines costs almost nothing
  for (stretch t : stretches) {
    // several at a time: a body of one vector is limited by the loop itself, and so is a single chain of sums (2 cycles each on
    // Zen 5). Not if a step has two vectors, and needs all registers.
    constexpr bool separate_sums = Step::at_once > 2;
    for (; t.steps >= Step::at_once; t.steps -= Step::at_once) {
      prefetch<Step>(t, distance);
      __m256i sum = separate_sums ? _mm256_setzero_si256() : accumulated;
      for (std::size_t step = 0; step < Step::at_once; ++step, t.in += i, t.out += o) sum = s(t.in, t.out, sum);
      accumulated = separate_sums ? _mm256_or_si256(accumulated, sum) : sum;
    }
    for (; t.steps != 0; --t.steps, t.in += i, t.out += o) accumulated = s(t.in, t.out, accumulated);
  }
  std::memcpy(out + inside * o, end, size - inside * o);
  return s.lossless(accumulated);
}

// Decodes n components. A step has: components, bytes_in(), bytes_out(), lead() and reach() (it loads bytes in - lead() to
// in + reach(), at most 16 and 128), lines_in and lines_out (cache lines of 4 steps, at most, to prefetch).
template <class Step>
ZARRBITS_AVX2 void decode_steps(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const Step s(p);
  const std::size_t i = s.bytes_in(), o = s.bytes_out(), size = n / 8 * p.bits + (n % 8 * p.bits + 7) / 8;
  const std::size_t steps = n / Step::components, rest = n % Step::components;
  // steps before `first` would load bytes before the caller's memory, those from `safe_end` on bytes after it
  std::size_t first = 0;
  while (first != steps && first * i < s.lead()) ++first;
  const std::size_t safe_end = std::max(first, steps_inside(steps, i, s.reach(), size));
  std::byte begin[32 + 256], end[32 + 384], last[Step::components * 8];
  if (first != 0) {
    const std::size_t copied = std::min(size, first * i + s.reach());
    zeros<32>(begin);
    std::memcpy(begin + 32, in, copied);
    if (copied == size) zeros<64>(begin + 32 + size);
  }
  zeros<32>(end);
  std::memcpy(end + 32, in + safe_end * i, size - safe_end * i);
  zeros<128>(end + 32 + (size - safe_end * i));
  const stretch stretches[] = {{begin + 32, out, first},
                               {in + first * i, out + first * o, safe_end - first},
                               {end + 32, out + safe_end * o, steps - safe_end},
                               {end + 32 + (steps - safe_end) * i, last, rest != 0}};
  const std::size_t distance = prefetch_pays() ? prefetch_distance : 0;
  for (stretch t : stretches) {
    for (; t.steps >= 4; t.steps -= 4, t.in += 4 * i, t.out += 4 * o) {
      for (std::size_t line = 0; line < Step::lines_out; ++line) __builtin_prefetch(t.out + distance + 64 * line, 1);
      for (std::size_t line = 0; line < Step::lines_in; ++line) __builtin_prefetch(t.in + distance + 64 * line);
      s(t.in, t.out);
      s(t.in + i, t.out + o);
      s(t.in + 2 * i, t.out + 2 * o);
      s(t.in + 3 * i, t.out + 3 * o);
    }
    for (; t.steps != 0; --t.steps, t.in += i, t.out += o) s(t.in, t.out);
  }
  if (rest != 0) std::memcpy(out + steps * o, last, rest * p.size);
}

}  // namespace zarrbits::detail::avx2

#endif

#endif
