// SPDX-License-Identifier: BSL-1.0
//
// An HDF5 datatype for Zarr: a tree that says how to read values into memory, and what they are there.
//
//   const type_description t = describe_type(H5Dget_type(dataset));
//   H5Dread(dataset, t.memory, ...);          // t.size bytes an element
//   zarr_data_type(t);                        // type_json.hpp: its JSON, where Zarr has a counterpart
//
// Values are read as they are stored if possible (with byte order, padding bits and NaN payloads). libhdf5 only converts what has
// no counterpart: unusual floats, integers of 12 bits or 3 bytes, gaps in compounds.
//
#ifndef ZARRBITS_HDF5_TYPE_DESCRIPTION_HPP
#define ZARRBITS_HDF5_TYPE_DESCRIPTION_HPP

#include "hdf5/h5.hpp"
#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::hdf5 {

enum class type_class {
  boolean,      // h5py's: an enumeration FALSE = 0, TRUE = 1 in one byte
  integer,      // also bitfields and times
  enumeration,  // an integer with names
  floating,
  complex,  // real part first
  text,     // fixed or variable length
  opaque,
  compound,
  array,
  sequence,  // variable length
  object_reference,
  region_reference,
  unsupported,  // `reason` says what it is
};

struct type_description {
  type_class kind = type_class::unsupported;
  handle memory;         // HDF5 type of a value in memory
  std::size_t size = 0;  // size of a value in memory
  std::size_t stored_size = 0;
  std::size_t offset = 0;  // offset in the compound that has this member
  std::string name;        // name of the member
  bool is_signed = false;
  bool big_endian = false;    // byte order in memory
  bool as_stored = true;      // the bytes in memory are the stored ones
  bool variable = false;      // text: a char* in memory
  bool space_padded = false;  // text: trailing spaces are padding
  bool wide_integer = false;  // opaque: an integer of more than 64 bits
  bool maybe_lossy = false;   // a float of more bits than Zarr has
  unsigned precision = 0;     // of stored integers, if less than their size; else 0
  unsigned bit_offset = 0;
  std::string stored;                   // unusual numbers: a description of the stored form, for people; opaque types: the tag
  std::string reason;                   // unsupported: what the type is
  array::extents dims;                  // array
  std::vector<type_description> parts;  // array, sequence: the element type; compound: the members
  std::vector<std::pair<std::string, text::json>> names;  // enumeration: names and values, in the order of the file

  const type_description& element() const { return parts.front(); }
};

// Does not throw for valid but unsupported types: the result says so. Throws failure if libhdf5 fails.
type_description describe_type(hid_t stored_type, unsigned depth = 0);

// Turns a compound of two equal floats with these names into a complex number, also inside of an array type.
void take_for_complex(type_description& t, std::string_view real, std::string_view imaginary);

// True if values hold pointers or addresses in memory (text of variable length, sequences, references): their bytes cannot be
// copied.
bool holds_references(const type_description& t);
// The first `reason` in the tree, or "".
std::string unsupported_reason(const type_description& t);

// True for a boolean that is int8 in the file, and a boolean only by an attribute (schema_override::int8_is_boolean).
inline bool is_int8_boolean(const type_description& t) {
  return t.kind == type_class::boolean && t.is_signed && t.names.empty() && t.stored.empty();
}

// True if the type's values have a byte order.
bool has_byte_order(const type_description& t);

// The byte order of a chunk of such values: that of the (first) stored number.
bool stored_big_endian(const type_description& t);

// Reverses the numbers in `count` elements that are not in the wanted byte order (compounds of mixed byte order).
void unify_byte_order(const type_description& t, std::byte* values, std::size_t count, bool big_endian);

}  // namespace zarrbits::hdf5

#endif
