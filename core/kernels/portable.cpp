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

namespace {

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
template <class T>
word add_lanes(word a, word b) noexcept {
  constexpr word top = repeat(word{1} << (8 * sizeof(T) - 1), 8 * sizeof(T));
  return ((a & ~top) + (b & ~top)) ^ ((a ^ b) & top);
}

// Blocks of 16 words, in two passes: one that compilers can vectorise, since all words are treated alike, and one that moves
// words of `m` bits together or apart. Word i of a block lies at bit i * m of the encoded block, which is whole bytes long.
struct block {
  static constexpr unsigned words = 16;
  unsigned m;
  std::uint8_t byte[words], turn[words];  // where a word begins: i * m / 8 and i * m % 8
  bool fits;                              // every word, moved up by its turn, in 64 bits, and no byte is made of three words

  explicit block(unsigned bits_of_a_word) noexcept : m(bits_of_a_word), fits(bits_of_a_word >= 8) {
    for (unsigned i = 0; i < words; ++i) {
      byte[i] = static_cast<std::uint8_t>(i * m / 8);
      turn[i] = i * m % 8;
      fits = fits && turn[i] + m <= 64;
    }
  }
  std::size_t bytes() const noexcept { return std::size_t{m} * words / 8; }
  std::size_t reach() const noexcept { return byte[words - 1] + 8u; }
};

template <class T>
bool encode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  constexpr unsigned width = 8 * sizeof(T), lanes = 8 / sizeof(T);
  const unsigned first = p.first_bit, bits = p.bits;
  const loss l = what_is_lost(p);
  const word bias = repeat(l.bias, width), mask = repeat(low_bits(bits), width);
  const unsigned group = lanes * bits;  // at most 63 here
  word sums = 0;
  const auto closed = [&](word w) noexcept {
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

  std::size_t i = 0;
  if (const block b(group); b.fits) {
    std::size_t room = n / 8 * bits;
    for (; i + block::words * lanes <= n && room >= b.reach(); i += block::words * lanes, out += b.bytes(), room -= b.bytes()) {
      word w[block::words];
      for (unsigned j = 0; j < block::words; ++j) {
        w[j] = load_lanes<T>(in + i * sizeof(T) + 8 * j);
        sums |= add_lanes<T>(w[j], bias);
        w[j] = closed(w[j]);
      }
      // the bits of a word that lie in the byte where the next one begins are stored once more with that
      store_le(out, w[0]);
      for (unsigned j = 1; j < block::words; ++j) store_le(out + b.byte[j], w[j] << b.turn[j] | w[j - 1] >> (group - b.turn[j]));
    }
  }
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
    sums |= add_lanes<T>(w, bias);
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
  // the lower half of each lane of 64, 32, 16 bits, whose bits are together, and how far the upper half goes
  constexpr unsigned per16 = width <= 16 ? 16 / width : 1, per32 = width <= 32 ? 32 / width : 1;
  const unsigned half64 = per32 * bits % 64, half32 = per16 * bits % 32, half16 = bits % 16;
  const word low64 = low_bits(half64), low32 = repeat(low_bits(half32), 32), low16 = repeat(low_bits(half16), 16);
  const word high32 = low32 << half32, high16 = low16 << half16;
  const auto opened = [=](word w) noexcept {
    if constexpr (width <= 32) w = (w & low64) | (w & ~low64) << (32 - half64);
    if constexpr (width <= 16) w = (w & low32) | (w & high32) << (16 - half32);
    if constexpr (width == 8) w = (w & low16) | (w & high16) << (8 - half16);
    return w;
  };
  // fields at the bottom of their lanes -> components. The sign: (x ^ s) - s, with the lanes' top bits set so that none borrows.
  const auto finish = [=](word w) noexcept {
    w = (((w ^ sign) | top) - sign) ^ top;
    return w << first & keep;
  };

  std::size_t i = 0, at = 0;
  const unsigned group = lanes * bits;
  if (const block b(group); b.fits) {
    const word whole = low_bits(group);
    for (; i + block::words * lanes <= n && size - at / 8 >= b.reach(); i += block::words * lanes, at += 8 * b.bytes()) {
      word w[block::words];
      for (unsigned j = 0; j < block::words; ++j) w[j] = load_le(in + at / 8 + b.byte[j]) >> b.turn[j];
      for (unsigned j = 0; j < block::words; ++j) store_lanes<T>(out + i * sizeof(T) + 8 * j, finish(opened(w[j] & whole)));
    }
  }
  for (; i + lanes <= n; i += lanes, at += group) store_lanes<T>(out + i * sizeof(T), finish(opened(read(at, group))));
  for (; i < n; ++i, at += bits) {
    const T v = static_cast<T>(finish(read(at, bits)));
    std::memcpy(out + i * sizeof(T), &v, sizeof v);
  }
}

constexpr word ones = 0x0101010101010101;

// Eight bytes 0 or 1 -> eight bits: the product moves byte i to bit 56 + i (or 63 - i); no two terms meet, so nothing carries.
constexpr word gather_lsb = 0x0102040810204080, gather_msb = 0x8040201008040201;

// 1 where a byte is not 0.
constexpr word nonzero(word w) noexcept {
  return (((w & ~(ones << 7)) + (ones * 0x7f)) | w) >> 7 & ones;
}

bool encode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  const word gather = p.msb_first ? gather_msb : gather_lsb;
  const word dropped = p.nonzero_is_true ? 0 : ~ones;
  word seen = 0;
  const auto bits = [&](word w) noexcept {
    seen |= w;
    return static_cast<std::byte>((dropped != 0 ? w & ones : nonzero(w)) * gather >> 56);
  };
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) *out++ = bits(load_le(in + i));
  if (i < n) *out = bits(load_le(in + i, n - i));
  return (seen & dropped) == 0;
}

void decode_bool(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  // the other constant: byte i of it has the one bit that belongs to element i
  const word select = p.msb_first ? gather_lsb : gather_msb;
  std::size_t i = 0;
  const auto spread = [&](std::byte b) noexcept {
    return ((std::to_integer<word>(b) * ones & select) + ones * 0x7f) >> 7 & ones;
  };
  for (; i + 8 <= n; i += 8) store_le(out + i, spread(*in++));
  if (i < n) store_le(out + i, spread(*in), n - i);
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

}  // namespace

const kernel_table portable_kernels = {
    "portable",
    {swap<std::uint8_t>, swap<std::uint16_t>, swap<std::uint32_t>, swap<std::uint64_t>},
    {encode<std::uint8_t>, encode<std::uint16_t>, encode<std::uint32_t>, encode<std::uint64_t>},
    {decode<std::uint8_t>, decode<std::uint16_t>, decode<std::uint32_t>, decode<std::uint64_t>},
    encode_bool,
    decode_bool,
    {check<std::uint8_t>, check<std::uint16_t>, check<std::uint32_t>, check<std::uint64_t>},
    extend,
};

}  // namespace zarrbits::detail
