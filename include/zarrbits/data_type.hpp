// SPDX-License-Identifier: BSL-1.0
//
// Zarr v3 data types with a fixed size, by their Zarr names.
//
//   zarrbits::data_type t = "complex64";
//   t.element_size();    // 8 bytes
//   t.components();      // 2: real and imaginary part
//   t.component_bits();  // 32
//   zarrbits::data_type s = R"({"name": "fixed_length_utf32", "configuration": {"length_bytes": 16}})";
//
// A data type is a small value; copies are cheap. A move is a copy, so no data type is ever empty.
//
#ifndef ZARRBITS_DATA_TYPE_HPP
#define ZARRBITS_DATA_TYPE_HPP

#include <zarrbits/detail/api.hpp>
#include <zarrbits/detail/requirements.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace zarrbits {

namespace detail {
struct access;
struct data_type_info;
}  // namespace detail

// A Zarr data type: its name, its sizes, and the structure of its elements.
class ZARRBITS_API data_type {
 public:
  // A Zarr name ("uint16", "complex_bfloat16", "r24") or the JSON of a data type, as a string or an object. Throws `error`
  // (invalid_data_type) with a sentence that says what is wrong.
  data_type(const char* name_or_json) : data_type(std::string_view(name_or_json)) {}
  // The same.
  data_type(const std::string& name_or_json) : data_type(std::string_view(name_or_json)) {}
  // The same.
  data_type(std::string_view name_or_json);

  // Shares what the other holds.
  data_type(const data_type&) noexcept = default;
  // Shares what the other holds.
  data_type& operator=(const data_type&) noexcept = default;

  // The Zarr name: "uint16", "struct".
  const std::string& name() const noexcept;
  // The JSON as it was given, on one line: "\"uint16\"", or an object.
  const std::string& json() const noexcept;

  // Bytes of one element in memory, and in the `bytes` codec. Sub-byte types take a whole byte.
  std::size_t element_size() const noexcept;

  // Components are what codecs work on: two for complex types (real part first), one for other numbers. For types that are not
  // numbers (r<N>, strings, struct) components() is 0 and the four functions below return 0 or false.
  unsigned components() const noexcept;
  unsigned component_bits() const noexcept;  // N: the bits of the type, counted from the least significant one
  unsigned component_size() const noexcept;  // bytes of a component in memory: 1, 2, 4 or 8
  bool is_signed() const noexcept;           // bits above N (or above the kept ones) repeat the sign
  bool is_bool() const noexcept;             // elements are 0 or 1

  // True if the byte order matters, that is if `bytes` needs "endian".
  bool has_byte_order() const noexcept;

  // True for the same data type in any spelling: a name, a string or an object, with or without an empty configuration, keys in
  // any order. Aliases are equal too: complex_float32 and complex64, complex_float64 and complex128, the units "us" and
  // "\u03bcs". Two structs are equal if their fields have the same names and data types in the same order.
  friend ZARRBITS_API bool operator==(const data_type& a, const data_type& b) noexcept;

 private:
  friend struct detail::access;

  std::shared_ptr<const detail::data_type_info> info_;
};

}  // namespace zarrbits

#endif
