// SPDX-License-Identifier: BSL-1.0
#include "compressors/nbit.hpp"

#include "compressors/bit_reader.hpp"

#include <algorithm>
#include <cstdint>

namespace zarrbits::compressors {

namespace {

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
      case 4: copy_bytes(out); break;
      default: fail();
    }
  }

  void copy_bytes(std::span<std::byte> out) {
    for (std::byte& b : out) b = static_cast<std::byte>(bits_.byte());
  }

  void array(std::span<std::byte> out, unsigned depth) {
    const std::size_t tree = next_;
    if (tree + 1 < values_.size() && values_[tree] == 4) {  // its elements may have a different size than declared
      next_ += 2;
      return copy_bytes(out);
    }
    const unsigned step = tree + 1 < values_.size() ? values_[tree + 1] : 0;
    if (step == 0 || out.size() % step != 0) fail();
    for (std::size_t offset = 0; offset < out.size(); offset += step) {
      next_ = tree;
      value(out.subspan(offset, step), depth + 1);
    }
  }

  void number(std::span<std::byte> out) {
    const unsigned order = parameter(), precision = parameter(), first = parameter();
    const std::uint64_t total_bits = 8 * static_cast<std::uint64_t>(out.size());
    if (order > 1 || precision == 0 || precision > total_bits || first > total_bits - precision) fail();
    // starting with the byte of the highest bit
    for (std::uint64_t high = std::uint64_t{first} + precision; high > first;) {
      const std::uint64_t low = std::max<std::uint64_t>(first, (high - 1) / 8 * 8);
      const auto i = static_cast<std::size_t>(low / 8);
      out[order == 0 ? i : out.size() - 1 - i] |=
          static_cast<std::byte>(bits_.byte(static_cast<unsigned>(high - low)) << (low % 8));
      high = low;
    }
  }

  [[noreturn]] static void fail() { throw corrupt_chunk("nbit: parameters that do not fit any datatype"); }

  std::span<const unsigned> values_;
  bit_reader bits_;
  std::size_t next_ = 0;
};

}  // namespace

buffer decode_nbit(std::span<const unsigned> v, buffer in, std::size_t size) {
  if (v.size() >= 2 && v[1] != 0) return in;  // stored, because packing would not shrink it
  if (v.size() < 5 || v[0] != v.size()) throw corrupt_chunk("nbit: parameters that do not fit any datatype");
  const std::size_t element = v[4];
  if (element == 0 || size % element != 0 || v[2] != size / element)
    throw corrupt_chunk("nbit: its length differs from the chunk's");
  buffer out(size, std::byte{0});
  nbit_decoder decoder(v, in);
  for (std::size_t offset = 0; offset < size; offset += element) decoder.element(std::span(out).subspan(offset, element));
  return out;
}

}  // namespace zarrbits::compressors
