// SPDX-License-Identifier: BSL-1.0
//
// A store may say in its root's notes that it follows a convention (docs/conventions.md), which differs from the plain form of
// docs/converter.md. What such a difference is belongs here, and nowhere else. That the store says so excuses nothing: values,
// names and lengths are still those of the source, by that convention's own rules.
//
#ifndef ZARRBITS_VERIFY_CONVENTION_HPP
#define ZARRBITS_VERIFY_CONVENTION_HPP

#include "verify/netcdf_dimensions.hpp"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <set>
#include <string>

namespace zarrbits::verification {

struct convention {
  bool one_element_is_scalar = false;               // netCDF has no scalars: an attribute of one element may be that element
  bool nwb = false;                                 // references in attributes are objects; links and types have attributes
  bool anndata = false;                             // categories are given by their path below the table
  bool links_are_objects = false;                   // what links lead to is copied
  std::shared_ptr<const netcdf_dimensions> netcdf;  // whose names and lengths count; null: HDF5's
};

// `root`: the zarr.json of the store's root.
convention convention_of(const nlohmann::json& root, source_tree& tree);

// The path that a reference in an attribute has in the plain form; other values as they are. `node`: the node's path in the
// store.
nlohmann::json plain_reference(const convention& c, const std::string& attribute, const nlohmann::json& value,
                               const std::string& node);

}  // namespace zarrbits::verification

#endif
