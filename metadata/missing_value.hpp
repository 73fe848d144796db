// SPDX-License-Identifier: BSL-1.0
//
// The attribute "_FillValue" as xarray takes it in Zarr v3: it does not open a store with another form. The same rule as
// hdf5/attribute_form.hpp has for HDF5 files.
//
//   missing_value_of("float32", -9.0);   // "AAAAAAAAIsA=", float64 in base64
//   missing_value_of("int16", 1e6);      // null: xarray would refuse it
//
#ifndef ZARRBITS_METADATA_MISSING_VALUE_HPP
#define ZARRBITS_METADATA_MISSING_VALUE_HPP

#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace zarrbits::metadata {

// Null if xarray takes no such value for arrays of this data type.
text::json missing_value_of(const text::json& data_type, const text::json& value);

// Gives "_FillValue" of an array that form or, if it has none, moves it to zarrbits' notes. `array`: a zarr.json.
void put_missing_value(text::json& array, std::vector<detail::attribute_remark>& remarks);

}  // namespace zarrbits::metadata

#endif
