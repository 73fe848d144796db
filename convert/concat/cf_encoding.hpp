// SPDX-License-Identifier: BSL-1.0
//
// The meaning of a variable's values by the CF conventions: packing, missing values, units. If files differ in these terms,
// values are converted to the terms of the first file.
//
//   const cf_encoding encoding = read_cf_encoding(dataset), first = ...;
//   const reconciled_encoding reconciled = reconcile({first, encoding}, {"a.nc", "b.nc"}, "/t", false);
//   part.change = change_of(encoding, reconciled);
//
#ifndef ZARRBITS_CONVERT_CONCAT_CF_ENCODING_HPP
#define ZARRBITS_CONVERT_CONCAT_CF_ENCODING_HPP

#include "convert/concat/joined_parts.hpp"
#include "hdf5/h5.hpp"
#include "text/json_text.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// A stored number: an integer exactly, a float as double.
struct cf_number {
  bool is_integer = true;
  std::int64_t integer_value = 0;
  double real = 0;
  std::size_t size = 8;  // bytes of its type
  double value() const { return is_integer ? static_cast<double>(integer_value) : real; }
  bool operator==(const cf_number& other) const;
};

// The type of a number in a file; `size` 0: the values are not numbers.
struct number_kind {
  bool is_integer = true, is_signed = true;
  std::size_t size = 0;
  bool operator==(const number_kind&) const = default;
};

struct cf_encoding {
  number_kind kind;
  std::optional<cf_number> scale, offset;  // value = stored * scale + offset
  std::optional<cf_number> fill, missing;  // stored values that mean "missing"
  std::string units, calendar;
  bool reinterpreted = false;  // netCDF's `_Unsigned`: the bits are those of the type with the other sign
  // Those of scale_factor, add_offset, _FillValue and missing_value that are not a single number, or none that a double or an
  // int64 holds exactly: their JSON.
  std::map<std::string, std::string> unread = {};
  bool operator==(const cf_encoding&) const = default;
};

// Terms of an open dataset. `lender`: the variable that it inherits units and calendar from (inherited_units.hpp), or none.
// Throws hdf5::failure.
cf_encoding read_cf_encoding(hid_t dataset, hid_t lender = H5I_INVALID_HID);

// Terms of an array in a store, from its zarr.json and its type. JSON does not give the sizes of numbers: these are taken from
// `model`. `lender`: the zarr.json of the variable that it inherits from, or null.
cf_encoding stored_cf_encoding(const text::json& node, const append::existing_array& array, const cf_encoding& model,
                               const text::json* lender);
// Like that, for an array of such numbers. `fill`: the value of its attribute "_FillValue", if it has one that can be read.
cf_encoding stored_cf_encoding(const text::json& node, const number_kind& kind, const std::optional<cf_number>& fill,
                               const cf_encoding& model, const text::json* lender);

// The terms of an array that is made of several variables.
struct reconciled_encoding {
  cf_encoding encoding;   // terms of the array
  bool unpacked = false;  // it holds unpacked values: floats, NaN for missing ones
  bool grows = false;     // the terms are those of a store
  std::string reason;     // the end of a sentence: why it is unpacked, or has another type than the first file; else empty
};
// Agrees on the terms of the array; `encodings` begins with those of the first file, or of a store that grows: then floats keep
// their size in another epoch. Throws zarrbits::error if no array can hold them all: the sentence ends with the difference, and
// `file_names` gives the name of each file.
reconciled_encoding reconcile(const std::vector<cf_encoding>& encodings, const std::vector<std::string>& file_names,
                              const std::string& path, bool grows);

// Converts from these terms to the agreed ones; null: the values stay, only their type may change.
std::shared_ptr<const value_change> change_of(const cf_encoding& from, const reconciled_encoding& to);

// The HDF5 type of such a number, in this machine's byte order.
hid_t native_type(const number_kind& kind);

// The meaning of a coordinate, as a number that can be compared across files; times in microseconds. Empty if it is missing.
std::optional<long double> meaning(const cf_encoding& terms, double stored);

// The name of the attribute without which such values cannot be unpacked, because it could not be read; else "".
std::string unreadable_packing_attribute(const cf_encoding& terms);

}  // namespace zarrbits::conversion

#endif
