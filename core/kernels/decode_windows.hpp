// SPDX-License-Identifier: BSL-1.0
//
// Windows of the AVX2 decoders (avx2_decode.cpp has the picture): for each number of bits, the bytes of each lane and their
// shift.
//
#ifndef ZARRBITS_CORE_KERNELS_DECODE_WINDOWS_HPP
#define ZARRBITS_CORE_KERNELS_DECODE_WINDOWS_HPP

#include "core/kernels/avx2.hpp"

#ifdef ZARRBITS_X86_KERNELS

#include <array>
#include <cstdint>
#include <type_traits>

namespace zarrbits::detail::avx2 {

// How a vector gets the bytes of its two halves, 16 bytes each; one load is faster than two.
enum class halves {
  split,   // the halves' bytes are separate: one load, placed so that the upper half begins with its byte 16 (and so before the
           // lower half's)
  joined,  // they share a byte: one load from the start of the lower half; vpermd then takes the upper half from one of its
           // dwords
  apart,   // they share a byte, and no such dword works: one load for each
};

// The place of a vector's bytes.
struct place {
  std::int8_t start;     // first loaded byte of the step
  std::uint8_t upper;    // joined: the dword at which the upper half begins. apart: the byte of the step
  std::uint8_t skip[2];  // bytes before the first byte of each half in its 16
};

// The bytes of halves of this many bits; the lower one begins at bit `from` of the step.
struct extent {
  unsigned low, high, end;
  constexpr extent(unsigned bits, unsigned from) : low(from / 8), high((from + bits) / 8), end((from + 2 * bits + 7) / 8) {}
  constexpr unsigned dword() const { return (high - low) / 4; }
};

constexpr halves halves_of(unsigned bits) {
  if (bits % 8 == 0) return halves::split;
  for (unsigned from = 0; from < 4 * bits; from += 2 * bits)
    if (const extent e(bits, from); e.end - (e.low + 4 * e.dword()) > 16) return halves::apart;
  return halves::joined;
}

constexpr place make_place(unsigned bits, unsigned from) {
  const extent e(bits, from);
  const auto narrow = [](unsigned v) { return static_cast<std::uint8_t>(v); };
  const auto low = static_cast<std::int8_t>(e.low);
  switch (halves_of(bits)) {
    case halves::split: return {static_cast<std::int8_t>(static_cast<int>(e.high) - 16), 0, {narrow(16 - (e.high - e.low)), 0}};
    case halves::joined: return {low, narrow(e.dword()), {0, narrow((e.high - e.low) % 4)}};
    default: return {low, narrow(e.high), {0, 0}};
  }
}

// Windows of up to two vectors. A byte of a vpshufb index that is 0x80 gives zero.
template <class Lane>
struct window_plan {
  alignas(32) std::uint8_t index[64];
  alignas(32) Lane up[64 / sizeof(Lane)];    // moves a field to the top of its lane: a count, for 16 bits a factor
  alignas(32) Lane down[64 / sizeof(Lane)];  // moves it to the bottom
  place at[2];
};

template <class Lane>
constexpr window_plan<Lane> make_window_plan(unsigned bits) {
  constexpr unsigned size = sizeof(Lane), lanes = 16 / size;
  window_plan<Lane> p{};
  for (unsigned v = 0; v < 2; ++v) {
    const unsigned of_half = lanes * bits;
    p.at[v] = make_place(of_half, 2 * v * of_half);
    for (unsigned half = 2 * v; half < 2 * v + 2; ++half)
      for (unsigned i = 0; i < lanes; ++i) {
        const unsigned at = half * of_half % 8 + i * bits, byte = p.at[v].skip[half % 2] + at / 8, below = at % 8;
        for (unsigned b = 0; b < size; ++b)
          p.index[16 * half + size * i + b] = static_cast<std::uint8_t>(byte + b < 16 ? byte + b : 0x80);
        const unsigned up = 8 * size < bits + below ? 0 : 8 * size - bits - below;  // plans whose fields do not fit are not used
        p.up[half * lanes + i] = static_cast<Lane>(size == 2 ? std::uint64_t{1} << up : up);
        p.down[half * lanes + i] = static_cast<Lane>(below);
      }
  }
  return p;
}

template <class Lane>
constexpr auto make_window_plans() {
  std::array<window_plan<Lane>, 8 * sizeof(Lane)> plans{};
  for (unsigned bits = 1; bits < plans.size(); ++bits) plans[bits] = make_window_plan<Lane>(bits);
  return plans;
}

template <unsigned width>
using lane = std::conditional_t<width == 16, std::uint16_t, std::conditional_t<width == 32, std::uint32_t, std::uint64_t>>;
template <unsigned width>
inline constexpr auto window_plans = make_window_plans<lane<width>>();

// The windows of a vector.
template <halves how>
class window {
 public:
  template <class Lane>
  ZARRBITS_AVX2_INLINE void prepare(const window_plan<Lane>& l, unsigned v) noexcept {
    index_ = load(l.index + 32 * v);
    at_ = l.at[v];
    upper_ = dwords_from(at_.upper);
  }
  std::size_t lead() const noexcept { return at_.start < 0 ? static_cast<std::size_t>(-at_.start) : 0; }
  std::size_t reach() const noexcept { return how == halves::apart ? at_.upper + 16u : static_cast<std::size_t>(at_.start + 32); }

  ZARRBITS_AVX2_INLINE __m256i operator()(const std::byte* in) const noexcept {
    __m256i x;
    if constexpr (how == halves::split) x = load(in + at_.start);
    if constexpr (how == halves::joined) x = _mm256_permutevar8x32_epi32(load(in + at_.start), upper_);
    if constexpr (how == halves::apart) x = load_halves(in + at_.start, in + at_.upper);
    return _mm256_shuffle_epi8(x, index_);
  }

 private:
  __m256i index_, upper_;
  place at_;
};

}  // namespace zarrbits::detail::avx2

#endif

#endif
