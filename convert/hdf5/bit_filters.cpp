// SPDX-License-Identifier: BSL-1.0
#include "convert/hdf5/bit_filters.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace zarrbits::conversion {

namespace {

// Numbers of any width, one after the other, each with its highest bit first.
class bit_reader {
 public:
  bit_reader(std::span<const std::byte> in, const char* who) : in_(in), who_(who) {}

  unsigned byte(unsigned bits = 8) {  // up to 8
    if (bits > 8 * static_cast<std::uint64_t>(in_.size()) - at_) throw damaged_chunk(std::string(who_) + ": it ends too early");
    const auto i = static_cast<std::size_t>(at_ / 8);
    const auto shift = static_cast<unsigned>(at_ % 8);
    unsigned two = std::to_integer<unsigned>(in_[i]) << 8;
    if (shift + bits > 8) two |= std::to_integer<unsigned>(in_[i + 1]);
    at_ += bits;
    return (two >> (16 - shift - bits)) & ((1U << bits) - 1);
  }
  std::uint64_t number(unsigned bits) {  // up to 64
    std::uint64_t v = 0;
    for (; bits > 8; bits -= 8) v = v << 8 | byte();
    return bits ? v << bits | byte(bits) : v;
  }

 private:
  std::span<const std::byte> in_;
  const char* who_;
  std::uint64_t at_ = 0;
};

// The filter's parameters are a tree in prefix order:
//   1, size, order, precision, first bit                      a number: `precision` bits of it are stored
//   2, size, tree of an element                               an array
//   3, size, number of members, (offset, tree) for each       a compound
//   4, size                                                   anything else, stored whole
class nbit_decoder {
 public:
  nbit_decoder(std::span<const unsigned> values, std::span<const std::byte> in) : values_(values), bits_(in, "nbit") {}

  void element(std::span<std::byte> out) {
    next_ = 3;
    value(out, 0);
  }

 private:
  unsigned parameter() {
    if (next_ >= values_.size()) fail();
    return values_[next_++];
  }

  void value(std::span<std::byte> out, unsigned depth) {
    if (depth > 32) fail();
    const unsigned kind = parameter(), size = parameter();
    if (size == 0 || size > out.size()) fail();
    out = out.first(size);
    switch (kind) {
      case 1: number(out); break;
      case 2: array(out, depth); break;
      case 3: {
        const unsigned members = parameter();
        for (unsigned i = 0; i < members; ++i) {
          const unsigned offset = parameter();
          if (offset >= out.size()) fail();
          value(out.subspan(offset), depth + 1);
        }
        break;
      }
      case 4: whole(out); break;
      default: fail();
    }
  }

  void whole(std::span<std::byte> out) {
    for (std::byte& b : out) b = static_cast<std::byte>(bits_.byte());
  }

  void array(std::span<std::byte> out, unsigned depth) {
    const std::size_t tree = next_;
    if (tree + 1 < values_.size() && values_[tree] == 4) {  // its elements need not have the size that is told
      next_ += 2;
      return whole(out);
    }
    const unsigned step = tree + 1 < values_.size() ? values_[tree + 1] : 0;
    if (step == 0 || out.size() % step != 0) fail();
    for (std::size_t at = 0; at < out.size(); at += step) {
      next_ = tree;
      value(out.subspan(at, step), depth + 1);
    }
  }

  void number(std::span<std::byte> out) {
    const unsigned order = parameter(), precision = parameter(), first = parameter();
    const std::uint64_t all = 8 * static_cast<std::uint64_t>(out.size());
    if (order > 1 || precision == 0 || precision > all || first > all - precision) fail();
    // from the byte with the highest bit down
    for (std::uint64_t high = std::uint64_t{first} + precision; high > first;) {
      const std::uint64_t low = std::max<std::uint64_t>(first, (high - 1) / 8 * 8);
      const auto i = static_cast<std::size_t>(low / 8);
      out[order == 0 ? i : out.size() - 1 - i] |= static_cast<std::byte>(bits_.byte(static_cast<unsigned>(high - low)) << (low % 8));
      high = low;
    }
  }

  [[noreturn]] static void fail() { throw damaged_chunk("nbit: parameters that fit no datatype"); }

  std::span<const unsigned> values_;
  bit_reader bits_;
  std::size_t next_ = 0;
};

// Parameters of scaleoffset: kind of scale, scale, elements, class, size, sign, order, whether there is a fill value, fill value.
constexpr std::size_t fill_at = 8, header = 21;

// `stored`: a number of `bits` bits; all ones is the fill value, if there is one.
template <class T>
T scaled(std::uint64_t stored, unsigned bits, std::uint64_t least, const std::uint64_t* fill, int digits) {
  const auto as_value = [](std::uint64_t v) {
    using raw = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    return std::bit_cast<T>(static_cast<raw>(v));
  };
  if (fill && stored == (std::uint64_t{1} << bits) - 1) return as_value(*fill);
  using integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  return static_cast<T>(static_cast<integer>(stored)) / std::pow(static_cast<T>(10), static_cast<T>(digits)) + as_value(least);
}

}  // namespace

buffer undo_nbit(const filter& f, buffer in, std::size_t size) {
  const auto& v = f.values;
  if (v.size() >= 2 && v[1] != 0) return in;  // nothing was to be gained
  if (v.size() < 5 || v[0] != v.size()) throw damaged_chunk("nbit: parameters that fit no datatype");
  const std::size_t element = v[4];
  if (element == 0 || size % element != 0 || v[2] != size / element) throw damaged_chunk("nbit: it has another length than the chunk");
  buffer out(size);
  nbit_decoder decoder(v, in);
  for (std::size_t at = 0; at < size; at += element) decoder.element(std::span(out).subspan(at, element));
  return out;
}

buffer undo_scaleoffset(const filter& f, buffer in, std::size_t size) {
  const auto fail = [](const char* why) { throw damaged_chunk(std::string("scaleoffset: ") + why); };
  const auto& v = f.values;
  if (v.size() < fill_at + 2) fail("parameters that fit no datatype");
  const std::size_t element = v[4];
  const bool is_float = v[3] == 1;
  const auto scale = static_cast<int>(v[1]);
  if (v[3] > 1 || v[0] != (is_float ? 0U : 2U) || (element != 1 && element != 2 && element != 4 && element != 8) || (is_float && element < 4) ||
      v[6] > 1) {
    fail("parameters that fit no datatype");
  }
  if (!is_float && scale == static_cast<int>(8 * element)) return in;  // nothing was to be gained
  if (size % element != 0 || v[2] != size / element) fail("it has another length than the chunk");
  if (in.size() < header) fail("it ends too early");
  const auto little = [&](std::size_t at, std::size_t n) {
    std::uint64_t x = 0;
    for (std::size_t i = n; i-- > 0;) x = x << 8 | std::to_integer<std::uint64_t>(in[at + i]);
    return x;
  };
  const std::uint64_t bits = little(0, 4);
  const auto length = std::min<std::size_t>(std::to_integer<std::size_t>(in[4]), 8);
  if (bits > 8 * element) fail("numbers that are wider than the datatype");
  const std::uint64_t least = little(5, length);
  const std::uint64_t filled = v[fill_at] | static_cast<std::uint64_t>(v[fill_at + 1]) << 32;
  const std::uint64_t* fill = v[7] == 1 ? &filled : nullptr;
  const auto width = static_cast<unsigned>(bits);
  bit_reader reader(std::span<const std::byte>(in).subspan(header), "scaleoffset");
  buffer out(size);
  if (width == 8 * element) {  // as they are in memory, where they were written
    if (in.size() - header < size) fail("it ends too early");
    std::copy_n(in.begin() + header, size, out.begin());
  }
  for (std::size_t at = 0; width < 8 * element && at < size; at += element) {
    const std::uint64_t stored = reader.number(width);
    std::uint64_t value = 0;
    if (is_float && element == 4) value = std::bit_cast<std::uint32_t>(scaled<float>(stored, width, least, fill, scale));
    else if (is_float) value = std::bit_cast<std::uint64_t>(scaled<double>(stored, width, least, fill, scale));
    else value = fill && stored == (std::uint64_t{1} << width) - 1 ? *fill : stored + least;
    for (std::size_t i = 0; i < element; ++i) out[at + i] = static_cast<std::byte>(value >> (8 * i));
  }
  if (v[6] == 1) {
    for (std::size_t at = 0; at < size; at += element) {
      std::reverse(out.begin() + static_cast<std::ptrdiff_t>(at), out.begin() + static_cast<std::ptrdiff_t>(at + element));
    }
  }
  return out;
}

}  // namespace zarrbits::conversion
