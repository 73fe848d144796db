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
// The result of each word is moved to its bit of the output. Decoding does the same in reverse.
//
#include "core/kernels/portable.hpp"

#include <type_traits>

namespace zarrbits::detail {

namespace portable {

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

// The value that decode would return for `v`.
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
      const T restored = round_trip(v, first, bits, true);
      bad = static_cast<T>(bad | static_cast<T>((v != restored) & (v != static_cast<T>(restored & type_mask))));
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

// Adds the lanes of two words; no carry goes from one lane to the next.
template <class T, class Words>
Words add_lanes(Words a, word b) noexcept {
  if constexpr (sizeof(T) == 8) return a + b;
  constexpr word top = repeat(word{1} << (8 * sizeof(T) - 1), 8 * sizeof(T));
  return ((a & ~top) + (b & ~top)) ^ ((a ^ b) & top);
}

// Blocks of 16 words, each of which is `m` bits once its lanes are closed: word i lies at bit i * m of the encoded block, so
// words i and i + 8 are at the same bit of a byte, m bytes apart. These are processed side by side, as pair i; m = 12:
//
//   bytes  |       0       |       1       |       2       |       3       | ...
//   pair 0 |...............0...............|               |               |     word 0, and word 8 from byte 12 on
//   pair 1                 |   (0) |...............1.......................|     word 1 turned by 4 bits, word 9 from byte 13 on
//
// Words of less than a byte are first joined with their neighbours. Words of 8 components are whole bytes.
template <class T>
struct block {
  static constexpr unsigned words = 16, pairs = words / 2, lanes = 8 / sizeof(T), components = words * lanes;
  static constexpr bool whole_bytes = lanes == 8;
  unsigned m, joined = pairs;  // bits of a word, and pairs, after joining
  std::uint8_t byte[pairs];    // start of the first word of a pair: i * m / 8 ...
  word turn[pairs];            // ... and i * m % 8
  bool wide = false;           // a word may span 9 bytes

  explicit block(unsigned bits) noexcept : m(lanes * bits) {
    for (; m < 8; m *= 2) joined /= 2;
    for (unsigned i = 0; i < joined; ++i) {
      byte[i] = static_cast<std::uint8_t>(i * m / 8);
      turn[i] = i * m % 8;
      wide = wide || turn[i] + m > 64;
    }
  }
  std::size_t bytes() const noexcept { return std::size_t{m} * joined / 4; }
  std::size_t pair_distance() const noexcept { return bytes() / 2; }  // distance of the words of a pair
  std::size_t reach() const noexcept { return pair_distance() + byte[joined - 1] + 8u + wide; }

  // Stores consecutive words; also writes up to 7 bytes after the block.
  void store(word_pair (&w)[pairs], std::byte* out) const noexcept {
    if (joined == pairs) return store_joined<pairs>(w, out);
    for (unsigned n = pairs, bits = m * joined / pairs; n != joined; n /= 2, bits *= 2)
      for (unsigned i = 0; i < n / 2; ++i) w[i] = w[2 * i] | w[2 * i + 1] << bits;
    if (joined == 4) return store_joined<4>(w, out);
    if (joined == 2) return store_joined<2>(w, out);
    store_joined<1>(w, out);
  }

  // Loads pair i; any bits may be above those of its words.
  word_pair load(const std::byte* in, unsigned i) const noexcept {
    const auto load_pair = [&](const std::byte* address) noexcept { return word_pair{load_le(address), load_le(address + m)}; };
    if constexpr (whole_bytes) return load_pair(in + byte[i]);
    const word_pair w = load_pair(in + byte[i]) >> turn[i];
    return wide ? w | load_pair(in + byte[i] + 1) << (8 - turn[i]) : w;
  }

 private:
  template <unsigned n>
  void store_joined(word_pair (&w)[pairs], std::byte* out) const noexcept {
    // if the next word begins in a word's last byte, these bits are stored again with the next word; the last word of half a
    // block ends with a byte
    word_pair turned[n] = {w[0]};
    for (unsigned i = 1; i < n; ++i) turned[i] = whole_bytes ? w[i] : w[i] << turn[i] | w[i - 1] >> (m - turn[i]);
    for (unsigned i = 0; i < n; ++i) store_le(out + byte[i], turned[i][0]);
    for (unsigned i = 0; i < n; ++i) store_le(out + pair_distance() + byte[i], turned[i][1]);
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

  std::size_t i = 0, capacity = n / 8 * bits;
  const block<T> b(bits);
  word_pair pair_sums{};
  for (; i + b.components <= n && capacity >= b.reach(); i += b.components, out += b.bytes(), capacity -= b.bytes()) {
    word_pair w[b.pairs];
    for (unsigned j = 0; j < b.pairs; ++j) {
      const std::byte* source = in + i * sizeof(T) + 8 * j;
      const word_pair x = {load_lanes<T>(source), load_lanes<T>(source + 8 * b.pairs)};
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

// `plain`: unsigned and first_bit 0, so fields at the bottom of their lanes are already components.
template <class T, bool plain>
void decode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  constexpr unsigned width = 8 * sizeof(T), lanes = 8 / sizeof(T);
  const unsigned first = p.first_bit, bits = p.bits;
  const word type_mask = repeat(p.zero_above ? low_bits(p.type_bits) : low_bits(width), width);
  const std::size_t size = n / 8 * bits + (n % 8 * bits + 7) / 8;
  const word sign = p.is_signed ? repeat(word{1} << (bits - 1), width) : 0;
  const word top = p.is_signed ? repeat(word{1} << (width - 1), width) : 0;
  const word keep = repeat(low_bits(width) << first & low_bits(width), width) & type_mask;

  // `count` bits from bit `position` on, without reading a byte after the last one
  const auto read = [&](std::size_t position, unsigned count) noexcept {
    const std::size_t byte = position / 8;
    const unsigned skip = position % 8;
    word w = size - byte >= 8 ? load_le(in + byte) : load_le(in + byte, size - byte);
    w >>= skip;
    if (skip + count > 64) w |= std::to_integer<word>(in[byte + 8]) << (64 - skip);
    return w & low_bits(count);
  };
  // splits each lane of 64, 32, 16 bits, whose bits are together, into a lower and an upper half, and gives the shift of the
  // upper half
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

  std::size_t i = 0, bit_offset = 0;
  const unsigned group = lanes * bits;
  if (group < 8) {
    if (n / lanes >= 2u << group) {
      word of[128];  // results for each word of less than a byte
      for (word w = 0; w >> group == 0; ++w) of[w] = finish(opened(w));
      for (; i + 8 * lanes <= n && size - bit_offset / 8 >= 8; i += 8 * lanes, bit_offset += 8 * group) {
        word w = load_le(in + bit_offset / 8);
        for (unsigned j = 0; j < 8; ++j, w >>= group) store_lanes<T>(out + i * sizeof(T) + 8 * j, of[w & low_bits(group)]);
      }
    }
  } else {
    const block<T> b(bits);
    for (; i + b.components <= n && size - bit_offset / 8 >= b.reach(); i += b.components, bit_offset += 8 * b.bytes())
      for (unsigned j = 0; j < b.pairs; ++j) {
        const word_pair w = finish(opened(b.load(in + bit_offset / 8, j)));
        std::byte* target = out + i * sizeof(T) + 8 * j;
        store_lanes<T>(target, w[0]);
        store_lanes<T>(target + 8 * b.pairs, w[1]);
      }
  }
  for (; i + lanes <= n; i += lanes, bit_offset += group)
    store_lanes<T>(out + i * sizeof(T), finish(opened(read(bit_offset, group))));
  for (; i < n; ++i, bit_offset += bits) {
    const T v = static_cast<T>(finish(read(bit_offset, bits)));
    std::memcpy(out + i * sizeof(T), &v, sizeof v);
  }
}

template <class T>
void decode(const packing& p, const std::byte* in, std::byte* out, std::size_t n) noexcept {
  return !p.is_signed && p.first_bit == 0 ? decode<T, true>(p, in, out, n) : decode<T, false>(p, in, out, n);
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
    {portable::encode<std::uint8_t>, portable::encode<std::uint16_t>, portable::encode<std::uint32_t>,
     portable::encode<std::uint64_t>},
    {portable::decode<std::uint8_t>, portable::decode<std::uint16_t>, portable::decode<std::uint32_t>,
     portable::decode<std::uint64_t>},
    portable::encode_bool,
    portable::decode_bool,
    {portable::check<std::uint8_t>, portable::check<std::uint16_t>, portable::check<std::uint32_t>,
     portable::check<std::uint64_t>},
    portable::extend,
};

}  // namespace zarrbits::detail
