// SPDX-License-Identifier: BSL-1.0
//
// The `bytes` codec of Zarr v3: elements in C order, each in little or big endian byte order.
//
//   auto c = zarrbits::bytes("float32", {.endian = zarrbits::endian::big});
//
#ifndef ZARRBITS_BYTES_HPP
#define ZARRBITS_BYTES_HPP

#include <zarrbits/codec.hpp>

#include <optional>

namespace zarrbits {

// The byte order of a number: least significant byte first (little) or last (big).
enum class endian { little, big };

// The configuration of bytes.
struct bytes_parameters {
  // "Required for data types for which endianness is applicable" (Zarr v3, bytes codec); no effect on other data types. The
  // default in C++ is little, which nearly every store holds. Not set: refused if the data type has a byte order.
  std::optional<zarrbits::endian> endian = zarrbits::endian::little;
  bool truncate = false;         // encode drops the upper bits of sub-byte types, those that are not part of the value
  bool nonzero_is_true = false;  // a bool that is neither 0 nor 1 counts as true
};

// The codec `bytes` for a data type. The bytes of each component are reversed, not those of the element: complex128 is two 8-byte
// numbers. r<N> has no byte order; structs go field by field. Sub-byte types take a whole byte: encode accepts both forms of a
// negative number (upper bits all set, or zero), decode ignores the upper bits, both write the extended form. Throws `error`.
[[nodiscard]] ZARRBITS_API codec bytes(const data_type& type, const bytes_parameters& parameters = {});

}  // namespace zarrbits

#endif
