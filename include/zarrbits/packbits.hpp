// SPDX-License-Identifier: BSL-1.0
//
// The `packbits` codec of Zarr v3: only the bits that matter, least significant bit first.
//
//   auto mask   = zarrbits::packbits("bool");                       // 8 elements a byte
//   auto camera = zarrbits::packbits("uint16", {.last_bit = 11});   // 12 of 16 bits: 1000 elements in 1500 bytes
//
// A GenICam Mono10p or Mono12p buffer already is such a payload (last_bit 9 or 11). This is not Apple's run-length PackBits.
//
#ifndef ZARRBITS_PACKBITS_HPP
#define ZARRBITS_PACKBITS_HPP

#include <zarrbits/codec.hpp>

#include <optional>

namespace zarrbits {

// Whether a byte gives the number of padding bits, and where it is.
enum class padding { none, first_byte, last_byte };

// The configuration of packbits. Every default is the safe choice.
struct packbits_parameters {
  padding padding_encoding = padding::none;  // position of the count byte
  unsigned first_bit = 0;                    // lowest kept bit of each component, 0 = least significant
  std::optional<unsigned> last_bit = {};     // highest kept bit, inclusive; not set: the highest bit of the component
  bool truncate = false;                     // encode drops bits that do not fit, instead of failing (never of bool)
  bool nonzero_is_true = false;              // a bool that is neither 0 nor 1 counts as true
  bool strict_padding = false;               // decode refuses padding bits that are not 0
};

// The codec `packbits` for a data type. Encode is checked: it fails on an element whose dropped bits decode would not restore,
// and names its index and value. Decode puts the kept bits back at first_bit, with zeros below, and the sign (signed types) or
// zeros above. Throws `error`.
[[nodiscard]] ZARRBITS_API codec packbits(const data_type& type, const packbits_parameters& parameters = {});

// Settings that numcodecs' configuration does not have. Every default is the safe choice.
struct numcodecs_packbits_parameters {
  bool nonzero_is_true = false;  // a bool that is neither 0 nor 1 counts as true
  bool strict_padding = false;   // decode refuses padding bits that are not 0
};

// numcodecs' PackBits (Zarr v2 "packbits", v3 "numcodecs.packbits"): only bool, most significant bit first, count byte in front.
// It differs from packbits with first_byte only in the order of the bits in each byte.
[[nodiscard]] ZARRBITS_API codec numcodecs_packbits(const data_type& type = "bool",
                                                    const numcodecs_packbits_parameters& parameters = {});

}  // namespace zarrbits

#endif
