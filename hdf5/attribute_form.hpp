// SPDX-License-Identifier: BSL-1.0
//
// The form of attributes that the readers of a store expect, where it is not the plain one of values_json.hpp.
//
#ifndef ZARRBITS_HDF5_ATTRIBUTE_FORM_HPP
#define ZARRBITS_HDF5_ATTRIBUTE_FORM_HPP

#include "hdf5/type_description.hpp"

#include <string>
#include <string_view>

namespace zarrbits::hdf5 {

struct attribute_form {
  // As libnetcdf gives attributes to its users: one element is a scalar, no value is "" or [], text is always UTF-8. Values that
  // netCDF's attributes cannot have, such as compounds, are only in the notes.
  bool netcdf = false;
  // NaN and infinities are numbers, which zarr-python reads and writes as NaN and Infinity; JSON has no such numbers, so other
  // readers refuse the node. Otherwise they are the words "NaN", "Infinity", "-Infinity".
  bool bare_nan = false;
  // The notes are among the attributes, so the original of a "_FillValue" in another form is the attribute "_FillValue_source".
  bool notes_shown = false;
};

// "_FillValue" of an array of type `array` in the form that xarray reads. Null if xarray would refuse `value`, or take it for
// another value: then the array must not have the attribute, because xarray would not open its group. `value`: a single value of
// type `type` as plain JSON.
text::json fill_for_xarray(const type_description& array, const type_description& type, const text::json& value);

// Makes numbers of the words that plain JSON has for NaN and infinities. Returns false if a NaN loses its bits.
bool unquote_numbers(const type_description& type, text::json& value);

// The bytes as netCDF's users see them as text: without NUL, and with U+FFFD for bytes that are not UTF-8.
std::string netcdf_text(std::string_view bytes);

// True if the value is an object, or has one in it; netCDF's attributes are numbers, texts, and lists of them.
bool holds_object(const text::json& value);

}  // namespace zarrbits::hdf5

#endif
