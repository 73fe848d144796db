// SPDX-License-Identifier: BSL-1.0
//
// The bits that the numbers of a dataset use.
//
//   const number t = describe(type);
//   used_bits bits;
//   collect(values, n, t, bits);
//   bits.range(8 * t.size, t.is_signed, first_bit, last_bit);
//
#ifndef ZARRBITS_INSPECT_USED_BITS_HPP
#define ZARRBITS_INSPECT_USED_BITS_HPP

#include "hdf5/h5.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace zarrbits::inspection {

// The bits that values use, collected value by value.
struct used_bits {
  std::uint64_t set_bits = 0;       // bits that are set in some value
  std::uint64_t non_sign_bits = 0;  // signed: bits that differ from a repeated sign

  // The smallest range of bits, out of `width`, that keeps every value.
  void range(unsigned width, bool is_signed, unsigned& first_bit, unsigned& last_bit) const noexcept;
};

// Not an error: packbits does not suit this dataset.
struct not_packable {
  std::string reason;
};

struct number {
  enum { integer, boolean, enumeration, real } kind = integer;
  unsigned size = 1;
  bool is_signed = false, big_endian = false;
  bool reduced = false;  // the datatype declares which bits it uses
  unsigned first_bit = 0, last_bit = 0;
  std::string name;
};

// Throws not_packable, hdf5::failure.
number describe(hid_t type);
// The value of an enumeration's member.
std::int64_t member_value(hid_t type, unsigned i, const number& n);

// Collects `n` values in their stored form.
void collect(const std::byte* values, std::size_t n, const number& t, used_bits& out);

}  // namespace zarrbits::inspection

#endif
