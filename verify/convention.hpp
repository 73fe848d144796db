// SPDX-License-Identifier: BSL-1.0
//
// The root's notes of a store may declare a convention (docs/reference/conventions.md), which differs from the plain form of
// docs/reference/types.md. This file, and no other, has the differences. The declaration excuses nothing: values, names and
// lengths must still be those of the source, by the rules of that convention.
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
  bool nwb = false;                                 // references in attributes are objects; links and types are attributes
  bool hdmf = false;                                // NWBZarrIO wrote the store: the same, and no notes
  bool anndata = false;                             // categories are paths below the table
  bool links_are_objects = false;                   // targets of links are copied
  std::shared_ptr<const netcdf_dimensions> netcdf;  // source of names and lengths; null: HDF5's
  // Those of a netCDF file whose store declares no convention, or another one, as a file that was exported has them; null: it is
  // none.
  std::shared_ptr<const netcdf_dimensions> exported;
  // Only the name says so: it may as well be a plain HDF5 file that was converted.
  bool may_be_plain = false;

  // The store has a part of a netCDF file, or of several: a file made of it has other dimensions, and its own numbers for them.
  bool is_part = false;

  bool netcdf_forms() const { return netcdf || exported; }  // booleans and texts are as netCDF has them
};

// `root`: the zarr.json of the store's root. `is_exchanged`: the source is a file that may have been made of the store.
convention convention_of(const nlohmann::json& root, source_tree& tree, bool is_exchanged);

// The plain path for a reference in an attribute; other values unchanged. `node`: the node's path in the store.
nlohmann::json plain_reference(const convention& c, const std::string& attribute, const nlohmann::json& value,
                               const std::string& node);

}  // namespace zarrbits::verification

#endif
