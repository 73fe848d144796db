// SPDX-License-Identifier: BSL-1.0
//
// The portable kernels of bool: one bit of bytes that are 0 or 1, from either end of the byte.
//
#include "core/kernels/portable.hpp"

namespace zarrbits::detail::portable {

namespace {

constexpr word ones = 0x0101010101010101;

// Eight bytes 0 or 1 -> eight bits: the product moves byte i to bit 56 + i (or 63 - i); no two terms meet, so nothing carries.
constexpr word gather_lsb = 0x0102040810204080, gather_msb = 0x8040201008040201;

// 1 if a byte is not 0.
template <class Words>
Words nonzero(Words w) noexcept {
  return (((w & ~(ones << 7)) + (ones * 0x7f)) | w) >> 7 & ones;
}

// A word as a matrix of 8 x 8 bits, byte i being row i, mirrored: quarters of 4 x 4 bits change places, then quarters of these.
//   msb_first false: bit j of byte i <-> bit i of byte j;  true: bit 7 - j of byte i <-> bit 7 - i of byte j
template <bool msb_first>
word_pair mirrored(word_pair x) noexcept {
  const auto exchanged = [](word_pair w, unsigned distance, word rows) noexcept {
    const word_pair differ = (w ^ w >> distance) & rows;
    return w ^ differ ^ differ << distance;
  };
  x = exchanged(x, msb_first ? 9 : 7, msb_first ? 0x0055005500550055 : 0x00aa00aa00aa00aa);
  x = exchanged(x, msb_first ? 18 : 14, msb_first ? 0x0000333300003333 : 0x0000cccc0000cccc);
  return exchanged(x, msb_first ? 36 : 28, msb_first ? 0x000000000f0f0f0f : 0x00000000f0f0f0f0);
}

template <bool msb_first, bool nonzero_is_true>
bool encode_bools(const std::byte* in, std::byte* out, std::size_t n) noexcept {
  std::size_t i = 0;
  word_pair pair_seen{};
  // Eight words become one: word i gives bit i of each byte; in the reverse direction, byte i becomes word i. Checked bools need
  // no mask: if it would change one, the answer is false.
  for (; i + 128 <= n; i += 128, out += 16) {
    word_pair x{};
    for (unsigned j = 0; j < 8; ++j) {
      const word_pair w{load_le(in + i + 8 * j), load_le(in + i + 8 * j + 64)};
      pair_seen |= w;
      x |= (nonzero_is_true ? nonzero(w) : w) << (msb_first ? 7 - j : j);
    }
    x = mirrored<msb_first>(x);
    store_le(out, x[0]);
    store_le(out + 8, x[1]);
  }
  word accumulated = pair_seen[0] | pair_seen[1];
  for (; i < n; i += 8) {
    const word w = n - i >= 8 ? load_le(in + i) : load_le(in + i, n - i);
    accumulated |= w;
    *out++ = static_cast<std::byte>((nonzero_is_true ? nonzero(w) : w) * (msb_first ? gather_msb : gather_lsb) >> 56);
  }
  return nonzero_is_true || (accumulated & ~ones) == 0;
}

// The 8 bytes of each byte of 8 bits: a table is faster than computing them, and 2 KiB do not crowd the first-level cache.
struct spread_bits {
  word of[256];
  explicit constexpr spread_bits(bool msb_first) : of{} {
    for (unsigned b = 0; b < 256; ++b)
      for (unsigned i = 0; i < 8; ++i) of[b] |= word{b >> (msb_first ? 7 - i : i) & 1} << (8 * i);
  }
};
constexpr spread_bits spread_lsb(false), spread_msb(true);

}  // namespace

bool encode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (p.nonzero_is_true) return p.msb_first ? encode_bools<true, true>(in, out, n) : encode_bools<false, true>(in, out, n);
  return p.msb_first ? encode_bools<true, false>(in, out, n) : encode_bools<false, false>(in, out, n);
}

void decode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const spread_bits& spread = p.msb_first ? spread_msb : spread_lsb;
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32, in += 4)
    for (unsigned j = 0; j < 4; ++j) store_le(out + i + 8 * j, spread.of[std::to_integer<unsigned>(in[j])]);
  for (; i + 8 <= n; i += 8) store_le(out + i, spread.of[std::to_integer<unsigned>(*in++)]);
  if (i < n) store_le(out + i, spread.of[std::to_integer<unsigned>(*in)], n - i);
}

}  // namespace zarrbits::detail::portable
