// SPDX-License-Identifier: BSL-1.0
//
// The HDF5 datatype of an array or an attribute of a store, and how its values lie in memory when they are handed to libhdf5.
//
//   const type_form t = form_of_note(note);             // {"class": "string", "length": 4, "padding": "null"}
//   const type_form t = form_of_array(type, big, notes);  // what a Zarr data type becomes
//
// In memory a value is as it will be in the file, bit for bit, so that libhdf5 has nothing to convert; only numbers of unusual
// precision are converted, from the number of the store.
//
#ifndef ZARRBITS_EXPORT_TYPE_FORM_HPP
#define ZARRBITS_EXPORT_TYPE_FORM_HPP

#include "hdf5/h5.hpp"
#include "text/json_text.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits::exporting {


// HDF5 cannot have something, or this exporter does not write it. what() is a reason, not a sentence.
struct not_expressible : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class form_kind {
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

struct form_member;

struct type_form {
  form_kind kind = form_kind::bytes;
  hdf5::handle file;       // the type in the file
  hdf5::handle memory;     // of the values that libhdf5 gets
  std::size_t size = 0;  // of a value in memory
  bool is_signed = false;
  bool big_endian = false;           // in memory
  bool converted = false;            // libhdf5 converts memory to file
  bool variable = false;             // a text
  bool is_ordered = false;           // bytes that the store has as a number: numpy's times
  bool is_wide = false;              // bytes that are an integer: JSON has its digits
  std::vector<form_member> members;  // compound: all; array and sequence: one, the base
  std::vector<hsize_t> dims;         // array

  const type_form& base() const;
  bool has_variable_parts() const;  // strings, sequences, references: values are not the bytes of the store
  bool has_converted_parts() const;
  bool holds_references() const;
  // libhdf5 (1.10.8) writes zeros for all but the last of several values: arrays of compounds with strings or sequences in them.
  bool must_be_written_alone() const;
};

struct form_member {
  std::string name;
  std::size_t offset = 0;
  type_form type;
};

// What decides the types that the store does not say.
struct form_rules {
  bool netcdf = false;        // netCDF's strings of fixed length end with NUL
  bool netcdf_types = false;  // and only what netCDF can hold (netcdf_types.hpp)
};

// A type as the notes of `convert` have it ("hdf5_type", "attribute_types"). Throws not_expressible.
type_form form_of_note(const text::json& note, const form_rules& rules, unsigned depth = 0);

// The type of a Zarr array's elements without such a note. `members`: the names and values of its enumeration, or null.
type_form form_of_array(const zarr::zarr_type& type, bool big_endian, const text::json& members, const form_rules& rules);

type_form integer_form(std::size_t size, bool is_signed, bool big_endian);
type_form float_form(std::size_t size, bool big_endian);
type_form boolean_form();
type_form text_form(std::size_t length, bool space_padded, const form_rules& rules);  // of fixed length
type_form variable_text_form();
type_form bytes_form(std::size_t length, const std::string& tag);
type_form reference_form(bool region);
type_form array_form(type_form base, std::vector<hsize_t> dims);
type_form sequence_form(type_form base);
type_form compound_form(std::vector<form_member> members);  // sets the offsets
type_form enumeration_form(type_form base, const text::json& members);

// A number that the notes describe in words: "signed integer of 12 bits in 2 bytes, bit offset 2". `name`: the number of the
// store; `big_endian`: bit fields and times in that order. Throws not_expressible.
type_form form_of_words(const std::string& words, const std::string& name, bool big_endian);  // stored_words.cpp
// The same of a number that the store has as its bytes; empty `file` if these are not such words.
type_form bytes_of_words(const std::string& words, std::size_t length);

}  // namespace zarrbits::exporting

#endif
