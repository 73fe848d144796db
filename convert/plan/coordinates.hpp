// SPDX-License-Identifier: BSL-1.0
//
// The coordinate variables of a selection, as CF and netCDF have them: the variables of dimensions, and what the attributes
// `coordinates`, `bounds` and `grid_mapping` name.
//
//   coordinates c;
//   c.add("/t2m", true, {"time", "lat", "crs"});
//   c.add("/time", false, {"time", "time_bnds"});
//   c.unselected();  // "/time", "/time_bnds", ... if they were added
//
#ifndef ZARRBITS_CONVERT_PLAN_COORDINATES_HPP
#define ZARRBITS_CONVERT_PLAN_COORDINATES_HPP

#include <zarrbits/convert_options.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::conversion {

constexpr const char* coordinate_attributes[] = {"coordinates", "bounds", "grid_mapping"};

// The names in such an attribute: "crs: lat lon" has three.
std::vector<std::string> names_in_attribute(std::string_view value);

class coordinates {
 public:
  // An array, whether it is selected, and what it refers to: paths, or names in its group or in one above.
  void add(const std::string& path, bool selected, std::vector<std::string> references);
  // The arrays that are not selected, and that a selected one refers to, or one of these. Sorted.
  std::vector<std::string> unselected() const;

 private:
  struct array {
    bool selected = false;
    std::vector<std::string> references;
  };
  std::map<std::string, array> arrays_;
};

// The patterns of `options` and those that match these paths alone.
std::vector<std::string> include_with(const convert_options& options, const std::vector<std::string>& paths);

// Says which coordinate variables `include` leaves out, or which ones are taken because of `with_coordinates`; "" if there are
// none.
std::string coordinates_note(const std::vector<std::string>& paths, bool are_taken);

}  // namespace zarrbits::conversion

#endif
