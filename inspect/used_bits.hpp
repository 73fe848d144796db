// SPDX-License-Identifier: BSL-1.0
//
// Which bits the numbers of a dataset use.
//
//   const number t = describe(type);
//   used_bits bits;
//   collect(values, n, t, bits);
//   bits.range(8 * t.size, t.is_signed, first_bit, last_bit);
//
#ifndef ZARRBITS_INSPECT_USED_BITS_HPP
#define ZARRBITS_INSPECT_USED_BITS_HPP

#include "convert/hdf5/h5.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace zarrbits::inspection {

// The bits that values differ in, collected value by value.
struct used_bits {
  std::uint64_t any = 0;     // bits that are set in some value
  std::uint64_t beyond = 0;  // signed: bits that are not what the sign would repeat there

  // The smallest first_bit and last_bit from which every value comes back, of `width` bits.
  void range(unsigned width, bool is_signed, unsigned& first_bit, unsigned& last_bit) const noexcept;
};

// Not an error: this dataset is not for packbits.
struct no_candidate {
  std::string reason;
};

struct number {
  enum { integer, boolean, enumeration, real } what = integer;
  unsigned size = 1;
  bool is_signed = false, big_endian = false;
  bool reduced = false;  // the datatype says which bits it has
  unsigned first_bit = 0, last_bit = 0;
  std::string name;
};

// Throws no_candidate, h5::failure.
number describe(hid_t type);
// An enumeration's member.
std::int64_t member_value(hid_t type, unsigned i, const number& n);

// `n` values as they are stored.
void collect(const std::byte* values, std::size_t n, const number& t, used_bits& out);

}  // namespace zarrbits::inspection

#endif
