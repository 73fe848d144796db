// SPDX-License-Identifier: BSL-1.0
//
// The HDF5 datatype of an array or an attribute of a store, and how its values lie in memory when they are handed to libhdf5.
//
//   const type_spec noted = spec_of_note(note, rules);  // {"class": "string", "length": 4, "padding": "null"}
//   const type_spec derived = spec_of_array(type, big_endian, members, rules);  // what a Zarr data type becomes
//
// In memory a value is as it will be in the file, bit for bit, so that libhdf5 has nothing to convert; only numbers of unusual
// precision are converted, from the number of the store.
//
#ifndef ZARRBITS_EXPORT_TYPE_SPEC_HPP
#define ZARRBITS_EXPORT_TYPE_SPEC_HPP

#include "hdf5/h5.hpp"
#include "text/json_text.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits::exporting {

// HDF5 cannot have something, or this exporter does not write it. what() is a reason, not a sentence.
struct unsupported_in_hdf5 : text::coded_error {
  using coded_error::coded_error;
};

enum class type_kind {
  integer,  // also an enumeration and a bit field
  floating,
  boolean,  // h5py's: an enumeration FALSE = 0, TRUE = 1 of one byte
  complex,  // a compound of two floats
  bytes,    // opaque, or a number that JSON has as digits or Zarr as bytes
  text,     // of fixed length, or `variable`
  object_reference,
  region_reference,
  compound,
  array,
  sequence,
};

struct member_spec;

struct type_spec {
  type_kind kind = type_kind::bytes;
  hdf5::handle file;     // the type in the file
  hdf5::handle memory;   // of the values that libhdf5 gets
  std::size_t size = 0;  // of a value in memory
  bool is_signed = false;
  bool big_endian = false;           // in memory
  bool converted = false;            // libhdf5 converts memory to file
  bool variable = false;             // a text
  bool is_ordered = false;           // bytes that the store has as a number: numpy's times
  bool is_wide = false;              // bytes that are an integer: JSON has its digits
  std::vector<member_spec> members;  // compound: all; array and sequence: one, the base
  array::extents dims;               // array

  const type_spec& base() const;
  bool has_variable_parts() const;  // strings, sequences, references: values are not the bytes of the store
  bool has_converted_parts() const;
  bool holds_references() const;
  // libhdf5 (1.10.8) writes zeros for all but the last of several values: arrays of compounds with strings or sequences in them.
  bool must_be_written_alone() const;
};

struct member_spec {
  std::string name;
  std::size_t offset = 0;
  type_spec type;
};

// What decides the types that the store does not say.
struct spec_rules {
  bool netcdf = false;        // netCDF's strings of fixed length end with NUL
  bool netcdf_types = false;  // and only what netCDF can hold (netcdf_types.hpp)
};

// A type as the notes of `convert` have it ("hdf5_type", "attribute_types"). Throws unsupported_in_hdf5.
type_spec spec_of_note(const text::json& note, const spec_rules& rules, unsigned depth = 0);

// The type of a Zarr array's elements without such a note. `members`: the names and values of its enumeration, or null.
type_spec spec_of_array(const zarr::zarr_type& type, bool big_endian, const text::json& members, const spec_rules& rules);

type_spec integer_spec(std::size_t size, bool is_signed, bool big_endian);
type_spec float_spec(std::size_t size, bool big_endian);
type_spec boolean_spec();
type_spec text_spec(std::size_t length, bool space_padded, const spec_rules& rules);  // of fixed length
type_spec variable_text_spec();
type_spec bytes_spec(std::size_t length, const std::string& tag);
type_spec reference_spec(bool region);
type_spec array_spec(type_spec base, array::extents dims);
type_spec sequence_spec(type_spec base);
type_spec compound_spec(std::vector<member_spec> members);  // sets the offsets
type_spec enumeration_spec(type_spec base, const text::json& members);

// A number that the notes describe in words: "signed integer of 12 bits in 2 bytes, bit offset 2". `name`: the number of the
// store; `big_endian`: bit fields and times in that order. Throws unsupported_in_hdf5.
type_spec parse_number_type(const std::string& words, const std::string& name, bool big_endian);  // number_type_notes.cpp
// Like parse_number_type(), for a number that the store has as its bytes; empty `file` if these are not such words.
type_spec parse_bytes_type(const std::string& words, std::size_t length);

}  // namespace zarrbits::exporting

#endif
