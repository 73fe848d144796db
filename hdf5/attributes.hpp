// SPDX-License-Identifier: BSL-1.0
//
// HDF5 attributes as JSON.
//
#ifndef ZARRBITS_HDF5_ATTRIBUTES_HPP
#define ZARRBITS_HDF5_ATTRIBUTES_HPP

#include "hdf5/attribute_form.hpp"
#include "hdf5/h5.hpp"
#include "hdf5/values_json.hpp"

#include <span>
#include <string>
#include <vector>

namespace zarrbits::hdf5 {

// What became of an attribute.
struct attribute_report {
  std::string name = {};    // escape_name()
  std::string key = {};     // in the JSON object, if that is a different one
  std::string reason = {};  // why it is skipped, lossy or elsewhere
  reason_code code = reason_code::none;
  bool skipped = false, lossy = false;
};

// All attributes of an object as one JSON object, in the form that its readers expect. Each gets an entry in the report. HDF5's
// internal ones (dimension scales, netCDF's bookkeeping) are left out. What this form does not show is under `annotation_key`:
// the type under "attribute_types", and the plain value under "attribute_values". `array_type`: the element type, if the object
// becomes an array ("_FillValue" depends on it).
text::json convert_attributes(hid_t object, reference_reader& references, const type_description* array_type,
                              const attribute_form& form, std::uint64_t memory, std::vector<attribute_report>& report);

// The order in which the attributes of an object were created, if the file stores it; else that of their names.
H5_index_t attribute_index(hid_t object);
// Appends the names of an object's attributes. Negative if not all can be listed.
herr_t list_attributes(hid_t object, H5_index_t index, H5_iter_order_t order, std::vector<std::string>& names);

// The strings of an attribute; empty if it has none. For HDF5's own attributes.
std::vector<std::string> text_attribute(hid_t object, const char* name);

// The digest of the values that `export` has noted at the root of a file; "" if absent.
std::string digest_note(hid_t root);

// True if values of type `stored` are changed by a conversion to `memory` and back; padding bits do not count. `values` holds
// `count` stored values.
bool is_conversion_lossy(hid_t stored, hid_t memory, std::span<const std::byte> values, std::size_t count);

}  // namespace zarrbits::hdf5

#endif
