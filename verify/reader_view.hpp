// SPDX-License-Identifier: BSL-1.0
//
// The form of attributes that the readers of a store see, where it is not the plain one of compare_json.hpp.
//
#ifndef ZARRBITS_VERIFY_READER_VIEW_HPP
#define ZARRBITS_VERIFY_READER_VIEW_HPP

#include "verify/compare_metadata.hpp"

#include <nlohmann/json.hpp>

namespace zarrbits::verification {

// As ==, but NaN is NaN.
bool same_json(const nlohmann::json& a, const nlohmann::json& b);

// What readers see of an attribute whose plain form is in the notes.
nlohmann::json reader_view(const attribute_values& a, const nlohmann::json& noted, const convention& rules);

// True if readers do not see the attribute at all: netCDF has none of this kind, or xarray refuses this fill value. `array`: the
// zarr.json of the array whose "_FillValue" it is, or null. `bookkeeping`: one of netCDF's own.
bool is_hidden_from_readers(const attribute_values& a, const nlohmann::json& noted, const nlohmann::json* array, bool bookkeeping,
                            const convention& rules);

// True if xarray takes `reader_value` for the value of "_FillValue" of this array. `array`: its zarr.json.
bool is_fill_for_xarray(const attribute_values& a, const nlohmann::json& reader_value, const nlohmann::json& array);

}  // namespace zarrbits::verification

#endif
