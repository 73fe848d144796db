// SPDX-License-Identifier: BSL-1.0
//
// Bounds and climatologies: by the CF conventions, such a variable has the units and the calendar of the variable that names it
// by its attribute "bounds" or "climatology", and often says neither itself. No other attribute that values depend on is
// inherited: xarray, too, unpacks bounds by their own scale_factor, add_offset and _FillValue.
//
//   const inherited_units units = find_inherited_units(file);
//   if (const auto entry = units.find("/time_bnds"); entry != units.end()) ... entry->second;   // "/time"
//
#ifndef ZARRBITS_CONVERT_CONCAT_INHERITED_UNITS_HPP
#define ZARRBITS_CONVERT_CONCAT_INHERITED_UNITS_HPP

#include "hdf5/source_file.hpp"
#include "text/json_text.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>

namespace zarrbits::conversion {

// The path in the store of the variable that lends its units of time, by the path of the one that inherits them.
using inherited_units = std::map<std::string, std::string>;

// `variables`: paths in a store. `text`: an attribute of one of them; "" if it has no such text.
inherited_units find_inherited_units(const std::set<std::string>& variables,
                                     const std::function<std::string(const std::string& path, const char* name)>& text);
// `file`: after walk() and a convention's override_schema().
inherited_units find_inherited_units(const hdf5::source_file& file);
// `nodes`: the zarr.json of each node of a store, by its path.
inherited_units find_inherited_units(const std::map<std::string, text::json>& nodes);

}  // namespace zarrbits::conversion

#endif
