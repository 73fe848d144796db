// SPDX-License-Identifier: BSL-1.0
//
// The portable kernels: several components at once in 64-bit words, a run-time number of bits, no CPU features.
//
// A word holds 8 / sizeof(T) lanes, the first component in the lowest lane. Packing closes the gaps between lanes in log2(lanes)
// steps; four lanes of 16 bits, 12 bits kept:
//
//   |....dddddddddddd|....cccccccccccc|....bbbbbbbbbbbb|....aaaaaaaaaaaa|     masked
//   |........ddddddddddddcccccccccccc|........bbbbbbbbbbbbaaaaaaaaaaaa|       pairs closed: odd lanes moved down by 16 - 12
//   |................ddddddddddddccccccccccccbbbbbbbbbbbbaaaaaaaaaaaa|        quads closed: upper half moved down by 32 - 24
//
// What is left of each word is moved to its bit of the output. Decoding goes the same way back.
//
#include "core/kernels/kernels.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace zarrbits::detail {

namespace portable {

using word = std::uint64_t;

constexpr bool little = std::endian::native == std::endian::little;

// `lane` (of `width` bits) in every lane of a word.
constexpr word repeat(word lane, unsigned width) noexcept {
  word w = lane;
  for (unsigned n = width; n < 64; n *= 2) w |= w << n;
  return w;
}

word load_le(const std::byte* in) noexcept {
  word w;
  std::memcpy(&w, in, 8);
  return little ? w : __builtin_bswap64(w);
}

void store_le(std::byte* out, word w) noexcept {
  if (!little) w = __builtin_bswap64(w);
  std::memcpy(out, &w, 8);
}

// The first `n` <= 8 bytes only.
word load_le(const std::byte* in, std::size_t n) noexcept {
  word w = 0;
  for (std::size_t i = 0; i < n; ++i) w |= std::to_integer<word>(in[i]) << (8 * i);
  return w;
}

void store_le(std::byte* out, word w, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(w >> (8 * i));
}

template <class T>
T reverse(T v) noexcept {
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(v);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(v);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(v);
  return v;
}

template <class T>
T load(const std::byte* in) noexcept {
  T v;
  std::memcpy(&v, in, sizeof v);
  return v;
}

// Components in native order <-> lanes with the first component lowest.
template <class T>
word load_lanes(const std::byte* in) noexcept {
  if constexpr (little) return load<word>(in);
  word w = 0;
  for (unsigned i = 0; i < 8 / sizeof(T); ++i) w |= word{load<T>(in + i * sizeof(T))} << (8 * sizeof(T) * i);
  return w;
}

template <class T>
void store_lanes(std::byte* out, word w) noexcept {
  if constexpr (little) {
    std::memcpy(out, &w, 8);
  } else {
    for (unsigned i = 0; i < 8 / sizeof(T); ++i) {
      const T v = static_cast<T>(w >> (8 * sizeof(T) * i));
      std::memcpy(out + i * sizeof(T), &v, sizeof v);
    }
  }
}

// Two words in a register of 128 bits, which every 64-bit CPU has; compilers make two of one where it has not. What is done with
// single words can be written so that it is done with these too.
using word_pair = word __attribute__((vector_size(16)));

template <class T>
void swap(const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if constexpr (sizeof(T) == 1) {
    if (n != 0 && in != out) std::memmove(out, in, n);
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      const T v = reverse(load<T>(in + i * sizeof(T)));
      std::memcpy(out + i * sizeof(T), &v, sizeof v);
    }
  }
}

// What decode would give back for `v`.
template <class T>
T round_trip(T v, unsigned first_bit, unsigned bits, bool is_signed) noexcept {
  constexpr unsigned width = 8 * sizeof(T);
  using S = std::make_signed_t<T>;
  const unsigned up = width - first_bit - bits;
  const T top = static_cast<T>(v << up);
  const unsigned down = width - bits;
  const T field = is_signed ? static_cast<T>(static_cast<S>(top) >> down) : static_cast<T>(top >> down);
  return static_cast<T>(field << first_bit);
}

template <class T>
bool check(const packing& p, const std::byte* in, std::size_t n) noexcept {
  const unsigned first = p.first_bit, bits = p.bits;
  const T type_mask = static_cast<T>(low_bits(p.type_bits));
  T bad = 0;
  if (p.is_signed && p.type_bits < 8 * sizeof(T)) {
    // two forms of a negative number: extended into the whole component, or zeros above the type
    for (std::size_t i = 0; i < n; ++i) {
      const T v = load<T>(in + i * sizeof(T));
      const T back = round_trip(v, first, bits, true);
      bad = static_cast<T>(bad | static_cast<T>((v != back) & (v != static_cast<T>(back & type_mask))));
    }
  } else if (p.is_signed) {
    for (std::size_t i = 0; i < n; ++i) {
      const T v = load<T>(in + i * sizeof(T));
      bad = static_cast<T>(bad | (v ^ round_trip(v, first, bits, true)));
    }
  } else {
    const T dropped = static_cast<T>(~(low_bits(bits) << first));
    for (std::size_t i = 0; i < n; ++i) bad = static_cast<T>(bad | (load<T>(in + i * sizeof(T)) & dropped));
  }
  return bad == 0;
}

// Lanes of two words added; no carry goes from one lane to the next.
template <class T, class Words>
Words add_lanes(Words a, word b) noexcept {
  if constexpr (sizeof(T) == 8) return a + b;
  constexpr word top = repeat(word{1} << (8 * sizeof(T) - 1), 8 * sizeof(T));
  return ((a & ~top) + (b & ~top)) ^ ((a ^ b) & top);
}

// Blocks of 16 words, each of which is `m` bits once its lanes are closed: word i lies at bit i * m of the encoded block, so words i
// and i + 8 at the same bit of a byte, m bytes apart. These are done side by side, as pair i; m = 12:
//
//   bytes  |       0       |       1       |       2       |       3       | ...
//   pair 0 |...............0...............|               |               |     word 0, and word 8 from byte 12 on
//   pair 1                 |   (0) |...............1.......................|     word 1 turned by 4 bits, word 9 from byte 13 on
//
// Words of less than a byte are joined before, neighbour with neighbour. Words of 8 components are whole bytes.
template <class T>
struct block {
  static constexpr unsigned words = 16, pairs = words / 2, lanes = 8 / sizeof(T), components = words * lanes;
  static constexpr bool whole_bytes = lanes == 8;
  unsigned m, joined = pairs;  // bits of a word, and pairs, after joining
  std::uint8_t byte[pairs];    // where the first word of a pair begins: i * m / 8 ...
  word turn[pairs];            // ... and i * m % 8
  bool wide = false;           // a word may be in 9 bytes

  explicit block(unsigned bits) noexcept : m(lanes * bits) {
    for (; m < 8; m *= 2) joined /= 2;
    for (unsigned i = 0; i < joined; ++i) {
      byte[i] = static_cast<std::uint8_t>(i * m / 8);
      turn[i] = i * m % 8;
      wide = wide || turn[i] + m > 64;
    }
  }
  std::size_t bytes() const noexcept { return std::size_t{m} * joined / 4; }
  std::size_t apart() const noexcept { return bytes() / 2; }  // the words of a pair
  std::size_t reach() const noexcept { return apart() + byte[joined - 1] + 8u + wide; }

  // The words one after the other; up to 7 bytes behind the block are written too.
  void store(word_pair (&w)[pairs], std::byte* out) const noexcept {
    if (joined == pairs) return store_joined<pairs>(w, out);
    for (unsigned n = pairs, bits = m * joined / pairs; n != joined; n /= 2, bits *= 2)
      for (unsigned i = 0; i < n / 2; ++i) w[i] = w[2 * i] | w[2 * i + 1] << bits;
    if (joined == 4) return store_joined<4>(w, out);
    if (joined == 2) return store_joined<2>(w, out);
    store_joined<1>(w, out);
  }

  // Pair i; above the bits of its words is whatever comes there.
  word_pair load(const std::byte* in, unsigned i) const noexcept {
    const auto both = [&](const std::byte* at) noexcept { return word_pair{load_le(at), load_le(at + m)}; };
    if constexpr (whole_bytes) return both(in + byte[i]);
    const word_pair w = both(in + byte[i]) >> turn[i];
    return wide ? w | both(in + byte[i] + 1) << (8 - turn[i]) : w;
  }

 private:
  template <unsigned n>
  void store_joined(word_pair (&w)[pairs], std::byte* out) const noexcept {
    // the bits of a word that lie in the byte where the next one begins are stored once more with that; the last word of a half
    // of the block ends with a byte
    word_pair turned[n] = {w[0]};
    for (unsigned i = 1; i < n; ++i) turned[i] = whole_bytes ? w[i] : w[i] << turn[i] | w[i - 1] >> (m - turn[i]);
    for (unsigned i = 0; i < n; ++i) store_le(out + byte[i], turned[i][0]);
    for (unsigned i = 0; i < n; ++i) store_le(out + apart() + byte[i], turned[i][1]);
  }
};

template <class T, bool is_signed>
bool encode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  constexpr unsigned width = 8 * sizeof(T), lanes = 8 / sizeof(T);
  const unsigned first = p.first_bit, bits = p.bits;
  const loss l = what_is_lost(p);
  const word bias = repeat(l.bias, width), mask = repeat(low_bits(bits), width);
  const unsigned group = lanes * bits;  // at most 63 here
  word sums = 0;
  const auto biased = [=](auto w) noexcept {
    if constexpr (is_signed) return add_lanes<T>(w, bias);
    else return w;
  };
  const auto closed = [=](auto w) noexcept {
    w = w >> first & mask;
    if constexpr (width == 8) w = (w & 0x00ff00ff00ff00ff) | (w & 0xff00ff00ff00ff00) >> (8 - bits);
    if constexpr (width <= 16) {
      const unsigned gap = 16 - bits * (16 / width);
      w = (w & 0x0000ffff0000ffff) | (w & 0xffff0000ffff0000) >> gap;
    }
    if constexpr (width <= 32) {
      const unsigned gap = 32 - bits * (32 / width);
      w = (w & 0x00000000ffffffff) | (w & 0xffffffff00000000) >> gap;
    }
    return w;
  };

  std::size_t i = 0, room = n / 8 * bits;
  const block<T> b(bits);
  word_pair pair_sums{};
  for (; i + b.components <= n && room >= b.reach(); i += b.components, out += b.bytes(), room -= b.bytes()) {
    word_pair w[b.pairs];
    for (unsigned j = 0; j < b.pairs; ++j) {
      const std::byte* at = in + i * sizeof(T) + 8 * j;
      const word_pair x = {load_lanes<T>(at), load_lanes<T>(at + 8 * b.pairs)};
      pair_sums |= biased(x);
      w[j] = closed(x);
    }
    b.store(w, out);
  }
  sums |= pair_sums[0] | pair_sums[1];
  word acc = 0;
  unsigned fill = 0;
  const auto append = [&](word w, unsigned count) noexcept {
    acc |= w << fill;
    fill += count;
    if (fill >= 64) {
      store_le(out, acc);
      out += 8;
      fill -= 64;
      acc = fill != 0 ? w >> (count - fill) : 0;
    }
  };
  for (; i + lanes <= n; i += lanes) {
    const word w = load_lanes<T>(in + i * sizeof(T));
    sums |= biased(w);
    append(closed(w), group);
  }
  for (; i < n; ++i) {
    const word v = load<T>(in + i * sizeof(T));
    sums |= add_lanes<T>(v, bias & low_bits(width));
    append(v >> first & low_bits(bits), bits);
  }
  store_le(out, acc, (fill + 7) / 8);
  return (sums & repeat(l.dropped, width)) == 0;
}

template <class T>
bool encode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return p.is_signed ? encode<T, true>(p, in, out, n) : encode<T, false>(p, in, out, n);
}

// `plain`: unsigned and first_bit 0, so that fields at the bottom of their lanes are components.
template <class T, bool plain>
void decode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  constexpr unsigned width = 8 * sizeof(T), lanes = 8 / sizeof(T);
  const unsigned first = p.first_bit, bits = p.bits;
  const word type_mask = repeat(p.zero_above ? low_bits(p.type_bits) : low_bits(width), width);
  const std::size_t size = n / 8 * bits + (n % 8 * bits + 7) / 8;
  const word sign = p.is_signed ? repeat(word{1} << (bits - 1), width) : 0;
  const word top = p.is_signed ? repeat(word{1} << (width - 1), width) : 0;
  const word keep = repeat(low_bits(width) << first & low_bits(width), width) & type_mask;

  // `count` bits from bit `at` on, without touching a byte behind the last one
  const auto read = [&](std::size_t at, unsigned count) noexcept {
    const std::size_t byte = at / 8;
    const unsigned skip = at % 8;
    word w = size - byte >= 8 ? load_le(in + byte) : load_le(in + byte, size - byte);
    w >>= skip;
    if (skip + count > 64) w |= std::to_integer<word>(in[byte + 8]) << (64 - skip);
    return w & low_bits(count);
  };
  // the lower and the upper half of each lane of 64, 32, 16 bits, whose bits are together, and how far the upper half goes
  constexpr unsigned per16 = width <= 16 ? 16 / width : 1, per32 = width <= 32 ? 32 / width : 1;
  const unsigned half64 = per32 * bits % 64, half32 = per16 * bits % 32, half16 = bits % 16;
  const word low64 = low_bits(half64), low32 = repeat(low_bits(half32), 32), low16 = repeat(low_bits(half16), 16);
  const word high64 = low64 << half64, high32 = low32 << half32, high16 = low16 << half16;
  const auto opened = [=](auto w) noexcept {
    if constexpr (width == 64) w &= low_bits(bits);
    if constexpr (width <= 32) w = (w & low64) | (w & high64) << (32 - half64);
    if constexpr (width <= 16) w = (w & low32) | (w & high32) << (16 - half32);
    if constexpr (width == 8) w = (w & low16) | (w & high16) << (8 - half16);
    return w;
  };
  // fields at the bottom of their lanes -> components. The sign: (x ^ s) - s, with the lanes' top bits set so that none borrows.
  const auto finish = [=](auto w) noexcept {
    if constexpr (!plain) w = ((((w ^ sign) | top) - sign) ^ top) << first & keep;
    return w;
  };

  std::size_t i = 0, at = 0;
  const unsigned group = lanes * bits;
  if (group < 8) {
    if (n / lanes >= 2u << group) {
      word of[128];  // what each word, which is less than a byte, becomes
      for (word w = 0; w >> group == 0; ++w) of[w] = finish(opened(w));
      for (; i + 8 * lanes <= n && size - at / 8 >= 8; i += 8 * lanes, at += 8 * group) {
        word w = load_le(in + at / 8);
        for (unsigned j = 0; j < 8; ++j, w >>= group) store_lanes<T>(out + i * sizeof(T) + 8 * j, of[w & low_bits(group)]);
      }
    }
  } else {
    const block<T> b(bits);
    for (; i + b.components <= n && size - at / 8 >= b.reach(); i += b.components, at += 8 * b.bytes())
      for (unsigned j = 0; j < b.pairs; ++j) {
        const word_pair w = finish(opened(b.load(in + at / 8, j)));
        std::byte* to = out + i * sizeof(T) + 8 * j;
        store_lanes<T>(to, w[0]);
        store_lanes<T>(to + 8 * b.pairs, w[1]);
      }
  }
  for (; i + lanes <= n; i += lanes, at += group) store_lanes<T>(out + i * sizeof(T), finish(opened(read(at, group))));
  for (; i < n; ++i, at += bits) {
    const T v = static_cast<T>(finish(read(at, bits)));
    std::memcpy(out + i * sizeof(T), &v, sizeof v);
  }
}

template <class T>
void decode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return !p.is_signed && p.first_bit == 0 ? decode<T, true>(p, in, out, n) : decode<T, false>(p, in, out, n);
}

constexpr word ones = 0x0101010101010101;

// Eight bytes 0 or 1 -> eight bits: the product moves byte i to bit 56 + i (or 63 - i); no two terms meet, so nothing carries.
constexpr word gather_lsb = 0x0102040810204080, gather_msb = 0x8040201008040201;

// 1 where a byte is not 0.
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
  // Eight words make one, word i giving bit i of each byte; mirrored, byte i is what word i becomes. No mask for bools that are
  // checked: where it would change one, the answer is false.
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
  word seen = pair_seen[0] | pair_seen[1];
  for (; i < n; i += 8) {
    const word w = n - i >= 8 ? load_le(in + i) : load_le(in + i, n - i);
    seen |= w;
    *out++ = static_cast<std::byte>((nonzero_is_true ? nonzero(w) : w) * (msb_first ? gather_msb : gather_lsb) >> 56);
  }
  return nonzero_is_true || (seen & ~ones) == 0;
}

bool encode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (p.nonzero_is_true) return p.msb_first ? encode_bools<true, true>(in, out, n) : encode_bools<false, true>(in, out, n);
  return p.msb_first ? encode_bools<true, false>(in, out, n) : encode_bools<false, false>(in, out, n);
}

// What each byte of 8 bits becomes: faster than computing it, and 2 KiB do not crowd the first-level cache.
struct spread_bits {
  word of[256];
  explicit constexpr spread_bits(bool msb_first) : of{} {
    for (unsigned b = 0; b < 256; ++b)
      for (unsigned i = 0; i < 8; ++i) of[b] |= word{b >> (msb_first ? 7 - i : i) & 1} << (8 * i);
  }
};
constexpr spread_bits spread_lsb(false), spread_msb(true);

void decode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const spread_bits& spread = p.msb_first ? spread_msb : spread_lsb;
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32, in += 4)
    for (unsigned j = 0; j < 4; ++j) store_le(out + i + 8 * j, spread.of[std::to_integer<unsigned>(in[j])]);
  for (; i + 8 <= n; i += 8) store_le(out + i, spread.of[std::to_integer<unsigned>(*in++)]);
  if (i < n) store_le(out + i, spread.of[std::to_integer<unsigned>(*in)], n - i);
}

void extend(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  if (p.is_bool) {
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(in[i] != std::byte{0});
    return;
  }
  const bool is_signed = p.is_signed;
  const unsigned bits = p.bits;
  for (std::size_t i = 0; i < n; ++i)
    out[i] = static_cast<std::byte>(round_trip(std::to_integer<std::uint8_t>(in[i]), 0, bits, is_signed));
}

}  // namespace portable

const kernel_table portable_kernels = {
    "portable",
    {portable::swap<std::uint8_t>, portable::swap<std::uint16_t>, portable::swap<std::uint32_t>, portable::swap<std::uint64_t>},
    {portable::encode<std::uint8_t>, portable::encode<std::uint16_t>, portable::encode<std::uint32_t>, portable::encode<std::uint64_t>},
    {portable::decode<std::uint8_t>, portable::decode<std::uint16_t>, portable::decode<std::uint32_t>, portable::decode<std::uint64_t>},
    portable::encode_bool,
    portable::decode_bool,
    {portable::check<std::uint8_t>, portable::check<std::uint16_t>, portable::check<std::uint32_t>, portable::check<std::uint64_t>},
    portable::extend,
};

}  // namespace zarrbits::detail
