// SPDX-License-Identifier: BSL-1.0
//
// A store may say in its root's "zarrbits" note that attributes have the form of a convention, which differs from the plain one
// of docs/converter.md. What such a difference is belongs here, and nowhere else.
//
#ifndef ZARRBITS_VERIFY_CONVENTION_HPP
#define ZARRBITS_VERIFY_CONVENTION_HPP

#include <nlohmann/json_fwd.hpp>

namespace zarrbits::verification {

struct convention {
  bool one_element_is_scalar = false;  // netCDF has no scalars: an attribute of one element may be that element
};

// `root`: the zarr.json of the store's root.
convention convention_of(const nlohmann::json& root);

}  // namespace zarrbits::verification

#endif
