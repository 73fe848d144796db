// SPDX-License-Identifier: BSL-1.0
//
// An HDF5 datatype for the codecs: a number of equal components, and the position of a component's bits in its bytes.
//
#ifndef ZARRBITS_FILTER_ELEMENT_HPP
#define ZARRBITS_FILTER_ELEMENT_HPP

#include "filter/caller.hpp"
#include "filter/message.hpp"

#include <cstdint>

namespace zarrbits::filter {

enum class kind : std::uint8_t { boolean, integer, enumeration, bitfield, real, opaque };

struct element {
  kind type_class = kind::integer;
  std::uint64_t size = 0;        // bytes of one component
  std::uint64_t components = 0;  // components of each element: array and complex types have several
  std::uint64_t precision = 0;   // bits that hold the value, from bit `offset`
  std::uint64_t offset = 0;
  bool zero_padded = true;  // the bits outside are zeros
  bool big_endian = false;
  bool is_signed = false;
  unsigned enum_bits = 0;  // enumerations: the fewest bits that hold every member

  bool reduced() const noexcept { return precision < 8 * size; }
};

// True if elements are stored elsewhere in the file, and chunks hold only their addresses: variable-length types and strings,
// references other than those to objects, and all that contains them.
bool holds_pointers(const library& h5, hid type) noexcept;

// Describes numbers, enumerations, bitfields, opaque bytes, complex numbers and arrays of these; refuses all other types with a
// sentence that begins with `codec`. Calls into HDF5 clear its error stack.
bool describe(const library& h5, hid type, const char* codec, element& out, sentence& reason) noexcept;

}  // namespace zarrbits::filter

#endif
