// SPDX-License-Identifier: BSL-1.0
//
// Values in memory as JSON: for attributes, and for "fill_value".
//
#ifndef ZARRBITS_HDF5_VALUES_JSON_HPP
#define ZARRBITS_HDF5_VALUES_JSON_HPP

#include "hdf5/type_description.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace zarrbits::hdf5 {

// Resolves references, which needs the whole file.
struct reference_reader {
  virtual ~reference_reader() = default;
  virtual text::json object(const void* reference) = 0;  // the target's path, "" for a null reference; null if it dangles
  virtual text::json region(const void* reference) = 0;
};

// A string, or {"base64": ...} if the bytes are not UTF-8.
text::json text_or_base64(std::string_view bytes);

// An integer, float or complex: numbers as JSON numbers; "NaN", "Infinity", "-Infinity"; hex if a NaN has a payload or a sign.
text::json number_json(const type_description& t, const std::byte* value);

// The value's text without trailing NULs (and spaces, if these are padding).
std::string_view text_of(const type_description& t, const std::byte* value);

// A value of any type as JSON, for attributes. Bytes that are not UTF-8, and opaque ones, become {"base64": "..."}.
text::json value_json(const type_description& t, const std::byte* value, reference_reader& references);

// The JSON fill value of a Zarr array of the data type zarr_data_type(t).
text::json fill_json(const type_description& t, const std::byte* value);

}  // namespace zarrbits::hdf5

#endif
