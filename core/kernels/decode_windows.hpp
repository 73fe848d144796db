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
  two_loads,  // they share a byte, and no such dword works: one load for each
};

// The place of a vector's bytes.
struct place {
  std::int8_t start;     // first loaded byte of the step
  std::uint8_t upper;    // joined: the dword at which the upper half begins. two_loads: the byte of the step
  std::uint8_t skip[2];  // bytes before the first byte of each half in its 16
};

// The bytes of halves of this many bits; the lower one begins at bit `first_bit` of the step.
struct extent {
  unsigned low, high, end;
  constexpr extent(unsigned bits, unsigned first_bit)
      : low(first_bit / 8), high((first_bit + bits) / 8), end((first_bit + 2 * bits + 7) / 8) {}
  constexpr unsigned dword() const { return (high - low) / 4; }
};

constexpr halves halves_of(unsigned bits) {
  if (bits % 8 == 0) return halves::split;
  for (unsigned first_bit = 0; first_bit < 4 * bits; first_bit += 2 * bits)
    if (const extent e(bits, first_bit); e.end - (e.low + 4 * e.dword()) > 16) return halves::two_loads;
  return halves::joined;
}

constexpr place make_place(unsigned bits, unsigned first_bit) {
  const extent e(bits, first_bit);
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
        const unsigned bit = half * of_half % 8 + i * bits, byte = p.at[v].skip[half % 2] + bit / 8, shift = bit % 8;
        for (unsigned b = 0; b < size; ++b)
          p.index[16 * half + size * i + b] = static_cast<std::uint8_t>(byte + b < 16 ? byte + b : 0x80);
        const unsigned up = 8 * size < bits + shift ? 0 : 8 * size - bits - shift;  // plans whose fields do not fit are not used
        p.up[half * lanes + i] = static_cast<Lane>(size == 2 ? std::uint64_t{1} << up : up);
        p.down[half * lanes + i] = static_cast<Lane>(shift);
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
template <halves placement>
class window {
 public:
  template <class Lane>
  ZARRBITS_AVX2_INLINE void prepare(const window_plan<Lane>& l, unsigned v) noexcept {
    index_ = load(l.index + 32 * v);
    place_ = l.at[v];
    upper_ = dwords_from(place_.upper);
  }
  std::size_t lead() const noexcept { return place_.start < 0 ? static_cast<std::size_t>(-place_.start) : 0; }
  std::size_t reach() const noexcept {
    return placement == halves::two_loads ? place_.upper + 16u : static_cast<std::size_t>(place_.start + 32);
  }

  ZARRBITS_AVX2_INLINE __m256i operator()(const std::byte* in) const noexcept {
    __m256i x;
    if constexpr (placement == halves::split) x = load(in + place_.start);
    if constexpr (placement == halves::joined) x = _mm256_permutevar8x32_epi32(load(in + place_.start), upper_);
    if constexpr (placement == halves::two_loads) x = load_halves(in + place_.start, in + place_.upper);
    return _mm256_shuffle_epi8(x, index_);
  }

 private:
  __m256i index_, upper_;
  place place_;
};

}  // namespace zarrbits::detail::avx2

#endif

#endif
