// SPDX-License-Identifier: BSL-1.0
//
// What the values of a variable mean by the CF conventions: packing, missing values, units. Of two files that differ in it, the
// values of one are put in the terms of the other.
//
//   const cf_terms here = terms_of(dataset), first = ...;
//   const agreement way = agree({here, first});
//   part.change = change_of(here, way);
//
#ifndef ZARRBITS_CONVERT_CONCAT_CF_TERMS_HPP
#define ZARRBITS_CONVERT_CONCAT_CF_TERMS_HPP

#include "convert/hdf5/h5.hpp"
#include "convert/hdf5/joined_parts.hpp"
#include "convert/text/json_text.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// A number as it is stored: an integer exactly, a float as double.
struct cf_number {
  bool integer = true;
  std::int64_t whole = 0;
  double real = 0;
  std::size_t size = 8;  // bytes of its type
  double value() const { return integer ? static_cast<double>(whole) : real; }
  bool operator==(const cf_number& other) const;
};

// The type of a number in a file; `size` 0: the values are no numbers.
struct number_kind {
  bool integer = true, is_signed = true;
  std::size_t size = 0;
  bool operator==(const number_kind&) const = default;
};

struct cf_terms {
  number_kind kind;
  std::optional<cf_number> scale, offset;  // value = stored * scale + offset
  std::optional<cf_number> fill, missing;  // stored values that mean none
  std::string units, calendar;
  bool reinterpreted = false;  // netCDF's `_Unsigned`: the stored bits are those of another type
  bool operator==(const cf_terms&) const = default;
};

// Of an open dataset. Throws h5::failure.
cf_terms terms_of(hid_t dataset);

// Of an array in a store, from its zarr.json and its type; sizes of numbers, which JSON does not tell, are those of `like`.
cf_terms terms_in_store(const json& node, const stored_values& array, const cf_terms& like);

// The terms of an array that is made of several variables.
struct agreement {
  cf_terms terms;         // of the array
  bool unpacked = false;  // its values are what packing meant: floats, NaN where there are none
  std::string why;        // unpacked, or of another type than the first: why, as a sentence's end; else empty
};
// All terms that occur, the first file's first. Throws convert_error where no array can hold them all; its sentence ends with
// what differs, and `who` names the file of each.
agreement agree(const std::vector<cf_terms>& all, const std::vector<std::string>& who, const std::string& path);

// From these terms to the agreed ones; null: the values stay, but for their type.
std::shared_ptr<const value_change> change_of(const cf_terms& from, const agreement& to);

// The HDF5 type of such a number, in the machine's byte order.
hid_t native_type(const number_kind& kind);

// Of a coordinate: what it means, as a number that can be compared across files; times in microseconds.
long double meaning(const cf_terms& terms, double stored);

}  // namespace zarrbits::conversion

#endif
