// SPDX-License-Identifier: BSL-1.0
//
// The coordinate variables of a selection, as CF and netCDF have them: the variables of dimensions, and what the attributes
// `coordinates`, `bounds` and `grid_mapping` name.
//
//   unselected_coordinates({{"/t2m", true}, {"/time", false}}, [](const std::string& path) { ... });   // "/time"
//
#ifndef ZARRBITS_TEXT_COORDINATES_HPP
#define ZARRBITS_TEXT_COORDINATES_HPP

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::text {

constexpr const char* coordinate_attributes[] = {"coordinates", "bounds", "grid_mapping"};

// The names in such an attribute: "crs: lat lon" has three.
std::vector<std::string> names_in_attribute(std::string_view value);

// What an array refers to: paths, or names in its group or in one above.
using references_function = std::function<std::vector<std::string>(const std::string& path)>;

// The arrays that are not selected, and that a selected one refers to, or one of these. Sorted. `is_selected`: of each array that
// may be converted. `references_of` is called for the selected arrays and these ones, and not for others.
std::vector<std::string> unselected_coordinates(const std::map<std::string, bool>& is_selected,
                                                const references_function& references_of);

// The patterns `include` and, `with_coordinates`, one for each of these paths.
std::vector<std::string> include_patterns(std::vector<std::string> include, bool with_coordinates,
                                          const std::vector<std::string>& coordinates);

// Says which coordinate variables `include` leaves out, or which ones are taken because of `with_coordinates`; "" if there are
// none.
std::string coordinates_note(const std::vector<std::string>& paths, bool are_taken);

}  // namespace zarrbits::text

#endif
