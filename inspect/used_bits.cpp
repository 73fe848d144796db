// SPDX-License-Identifier: BSL-1.0
#include "inspect/used_bits.hpp"

#include <bit>
#include <cstring>

namespace zarrbits::inspection {

void used_bits::range(unsigned width, bool is_signed, unsigned& first_bit, unsigned& last_bit) const noexcept {
  const std::uint64_t top = is_signed ? non_sign_bits : set_bits;
  const auto highest = static_cast<unsigned>(std::bit_width(top));  // bits that hold it
  last_bit = is_signed ? highest : highest == 0 ? 0 : highest - 1;  // and one for the sign
  if (last_bit >= width) last_bit = width - 1;
  first_bit = set_bits == 0 ? 0 : static_cast<unsigned>(std::countr_zero(set_bits));
  if (first_bit > last_bit) first_bit = last_bit;
}

std::int64_t member_value(hid_t type, unsigned i, const number& n) {
  unsigned char raw[8] = {};
  hdf5::check(H5Tget_member_value(type, i, raw), "get an enumeration's value");
  std::uint64_t v = 0;
  for (unsigned b = 0; b < n.size; ++b) v = v << 8 | raw[n.big_endian ? b : n.size - 1 - b];
  const unsigned spare = 64 - 8 * n.size;
  return n.is_signed ? static_cast<std::int64_t>(v << spare) >> spare : static_cast<std::int64_t>(v);
}

number describe(hid_t type) {
  number n;
  const H5T_class_t cls = H5Tget_class(type);
  const std::size_t size = H5Tget_size(type);
  if (cls != H5T_INTEGER && cls != H5T_FLOAT && cls != H5T_ENUM && cls != H5T_BITFIELD)
    throw not_packable{"neither integers nor booleans nor floats"};
  if (size != 1 && size != 2 && size != 4 && size != 8)
    throw not_packable{"values of " + std::to_string(size) + " bytes; packbits takes 1, 2, 4 and 8"};
  n.size = static_cast<unsigned>(size);
  const H5T_order_t order = H5Tget_order(type);
  if (n.size > 1 && order != H5T_ORDER_LE && order != H5T_ORDER_BE)
    throw not_packable{"a byte order that packbits does not take"};
  n.big_endian = order == H5T_ORDER_BE;
  const hdf5::handle base(cls == H5T_ENUM ? H5Tget_super(type) : H5Tcopy(type), "get a base type");
  const bool is_integer = cls == H5T_INTEGER || cls == H5T_ENUM;
  n.is_signed = is_integer && H5Tget_sign(base) == H5T_SGN_2;
  const auto precision = static_cast<unsigned>(H5Tget_precision(base));
  const int offset = H5Tget_offset(base);
  if (precision == 0 || offset < 0 || precision + static_cast<unsigned>(offset) > 8 * n.size)
    throw not_packable{"a precision that packbits does not take"};
  n.reduced = precision < 8 * n.size;
  n.first_bit = static_cast<unsigned>(offset);
  n.last_bit = n.first_bit + precision - 1;
  n.kind = cls == H5T_FLOAT ? number::real : cls == H5T_ENUM ? number::enumeration : number::integer;
  n.name = (cls == H5T_FLOAT      ? "float"
            : cls == H5T_BITFIELD ? "bitfield"
            : n.is_signed         ? "int"
                                  : "uint") +
           std::to_string(precision);
  if (cls == H5T_ENUM) {
    if (n.reduced) throw not_packable{"an enumeration over an integer of reduced precision"};
    const int members = H5Tget_nmembers(type);
    bool zero_and_one = members == 2, negative = false;
    for (int i = 0; i < members; ++i) {
      const std::int64_t v = member_value(type, static_cast<unsigned>(i), n);
      zero_and_one = zero_and_one && (v == 0 || v == 1);
      negative = negative || v < 0;
    }
    if (members == 2 && zero_and_one && n.size == 1) {
      n.kind = number::boolean;
      n.name = "bool";
    } else {
      n.name = "enum of " + n.name;
    }
    n.is_signed = n.is_signed && negative;
  }
  return n;
}

namespace {

// The bits of all values of a piece, several at a time in a word of 64 bits: `or` keeps them apart, and in any byte order.
struct lanes {
  unsigned bits, sign;  // of a value; where in it the sign is
  std::uint64_t set_bits = 0, non_sign_bits = 0;

  void add_unsigned(const std::byte* p, std::size_t words) noexcept {
    std::uint64_t w[4], sum[4] = {};
    std::size_t i = 0;
    for (; i + 4 <= words; i += 4) {
      std::memcpy(w, p + 8 * i, sizeof w);
      for (unsigned k = 0; k < 4; ++k) sum[k] |= w[k];
    }
    for (; i < words; ++i) {
      std::memcpy(w, p + 8 * i, 8);
      sum[0] |= w[0];
    }
    set_bits |= sum[0] | sum[1] | sum[2] | sum[3];
  }
  // A negative value needs the bits in which it differs from its sign.
  void add_signed(const std::byte* p, std::size_t words) noexcept {
    const std::uint64_t ones = bits == 64 ? 1 : ~std::uint64_t{0} / ((std::uint64_t{1} << bits) - 1);
    std::uint64_t used = 0, differing = 0;
    for (std::size_t i = 0; i < words; ++i) {
      std::uint64_t w;
      std::memcpy(&w, p + 8 * i, sizeof w);
      const std::uint64_t negative = w >> sign & ones;
      used |= w;
      differing |= w ^ ((negative << (bits - 1) << 1) - negative);  // all bits of each negative value
    }
    set_bits |= used;
    non_sign_bits |= differing;
  }
  std::uint64_t folded(std::uint64_t word, bool swap) const noexcept {
    for (unsigned b = 32; b >= bits; b /= 2) word |= word >> b;
    if (bits < 64) word &= (std::uint64_t{1} << bits) - 1;
    std::uint64_t swapped = 0;
    for (unsigned b = 0; b < bits; b += 8) swapped |= (word >> b & 0xff) << (bits - 8 - b);
    return swap ? swapped : word;
  }
};

}  // namespace

void collect(const std::byte* values, std::size_t n, const number& t, used_bits& out) {
  const bool swap = t.size > 1 && t.big_endian != (std::endian::native == std::endian::big);
  lanes lane_bits{8 * t.size, swap ? 7 : 8 * t.size - 1};
  const std::size_t bytes = n * t.size, words = bytes / 8;
  std::byte tail[8] = {};  // zeros need no bits
  if (bytes % 8 > 0) std::memcpy(tail, values + 8 * words, bytes % 8);
  if (t.is_signed) {
    lane_bits.add_signed(values, words);
    lane_bits.add_signed(tail, 1);
  } else {
    lane_bits.add_unsigned(values, words);
    lane_bits.add_unsigned(tail, 1);
  }
  out.set_bits |= lane_bits.folded(lane_bits.set_bits, swap);
  out.non_sign_bits |= lane_bits.folded(lane_bits.non_sign_bits, swap);
}

}  // namespace zarrbits::inspection
