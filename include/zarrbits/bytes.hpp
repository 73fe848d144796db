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

// The order of the bytes of a number: the least significant one first (little), or last (big).
enum class endian { little, big };

// The configuration of bytes.
struct bytes_parameters {
  // "Required for data types for which endianness is applicable" (Zarr v3, bytes codec); elsewhere without effect. From C++ the
  // default is little, which is what nearly every store holds. Not set: refused where the data type has a byte order.
  std::optional<zarrbits::endian> endian = zarrbits::endian::little;
  bool truncate = false;         // encode drops the upper bits of sub-byte types that do not belong to them
  bool nonzero_is_true = false;  // a bool that is neither 0 nor 1 counts as true
};

// What is reversed is the component, never the element: complex128 is two 8-byte numbers. r<N> has no byte order; structs go
// field by field. Sub-byte types take a whole byte: encode takes both forms of a negative number (upper bits all set, or zero),
// decode ignores them, both write the extended form. Throws `error`.
[[nodiscard]] codec bytes(const data_type& type, const bytes_parameters& parameters = {});

}  // namespace zarrbits

#endif
