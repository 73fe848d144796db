// SPDX-License-Identifier: BSL-1.0
//
// Datatypes as JSON: what Zarr calls them, and all that HDF5 says of them.
//
#ifndef ZARRBITS_HDF5_TYPE_JSON_HPP
#define ZARRBITS_HDF5_TYPE_JSON_HPP

#include "hdf5/type_description.hpp"
#include "text/json_text.hpp"

namespace zarrbits::hdf5 {

// Zarr's data type for a value of fixed size, or null: "int16", {"name": "struct", ...}.
text::json zarr_data_type(const type_description& t, bool inside_struct = false);

// A machine-readable description of the type, for attributes: {"class": "enum", "base": "int8", "members": {...}}.
text::json datatype_json(const type_description& t);

// The Zarr data type of an opaque one by whose tag h5py stores numpy's times ("NUMPY:<M8[us]"); null for others.
text::json numpy_time(const type_description& t);

// Names and values of an enumeration.
text::json enumeration_members(const type_description& t);

// The names of the nodes for the members of a compound that becomes a group.
std::vector<std::string> member_nodes(const type_description& compound);

}  // namespace zarrbits::hdf5

#endif
