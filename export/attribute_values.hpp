// SPDX-License-Identifier: BSL-1.0
//
// Attributes of a store as attributes of HDF5: their types by the notes or, without one, by the value.
//
#ifndef ZARRBITS_EXPORT_ATTRIBUTE_VALUES_HPP
#define ZARRBITS_EXPORT_ATTRIBUTE_VALUES_HPP

#include "export/netcdf_types.hpp"
#include "export/store_node.hpp"
#include "export/type_spec.hpp"
#include "export/value_writer.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zarrbits::exporting {

// A value ready for H5Awrite.
struct attribute_spec {
  type_spec type;
  array::extents dims;
  bool scalar = true, null = false;
  text::json value;
  text::coded_reason remark;  // why it is not what the store has
};

struct attribute_rules {
  spec_rules forms;
  bool nwb = false;                        // hdmf-zarr's own attributes stand for links and references
  bool has_notes = false;                  // of `convert`, which have each type that is not the usual one
  const zarr::zarr_type* array = nullptr;  // of the attributes of an array: "_FillValue" has its type
  bool big_endian = false;                 // and its byte order
  bool is_scale = false;                   // of a dimension of netCDF, which has attributes that are made elsewhere
  committed_types& types;
};

// `note`: its type in the notes, or null. Throws unsupported_in_hdf5.
attribute_spec attribute_spec_of(const std::string& name, text::json value, const text::json& note, bool noted,
                                 const attribute_rules& rules);

// Creates the attribute, of the type `in_file`. Throws unsupported_in_hdf5 and hdf5::failure.
void write_attribute(hid_t object, const std::string& name, const attribute_spec& form, hid_t in_file,
                     reference_maker& references, std::uint64_t memory);

// All attributes of a node. `report` gets the name of each, and why it is left out, or what it became; "" if all is as in the
// store.
void write_attributes(hid_t object, const text::json& attributes, const text::json& notes, const attribute_rules& rules,
                      reference_maker& references, std::uint64_t memory,
                      const std::function<void(const std::string& name, bool skipped, const text::coded_reason& reason)>& report);

}  // namespace zarrbits::exporting

#endif
