// SPDX-License-Identifier: BSL-1.0
#include "repack/virtual_mapping.hpp"

#include <cstddef>

namespace zarrbits::repacking {

namespace {

// libhdf5 takes "%b" in the name of a part for the number of a block.
std::string without_patterns(const std::string& name) {
  std::string result;
  for (const char c : name) result += c == '%' ? "%%" : std::string(1, c);
  return result;
}

}  // namespace

hdf5::handle properties_without_layout(hid_t properties_of_part, hid_t type) {
  hdf5::handle properties(H5Pcreate(H5P_DATASET_CREATE), "create properties");
  hdf5::check(H5Pset_obj_track_times(properties, false), "leave out times");
  unsigned order = 0, max_compact = 0, min_dense = 0;
  hdf5::check(H5Pget_attr_creation_order(properties_of_part, &order), "get the order of attributes");
  hdf5::check(H5Pset_attr_creation_order(properties, order), "set the order of attributes");
  hdf5::check(H5Pget_attr_phase_change(properties_of_part, &max_compact, &min_dense), "get the storage of attributes");
  hdf5::check(H5Pset_attr_phase_change(properties, max_compact, min_dense), "set the storage of attributes");
  H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
  hdf5::check(H5Pfill_value_defined(properties_of_part, &status), "get the fill value");
  if (status == H5D_FILL_VALUE_USER_DEFINED) {
    std::vector<std::byte> value(H5Tget_size(type));
    hdf5::check(H5Pget_fill_value(properties_of_part, type, value.data()), "get the fill value");
    hdf5::check(H5Pset_fill_value(properties, type, value.data()), "set the fill value");
  }
  return properties;
}

hdf5::handle virtual_properties(const virtual_mapping& mapping, hid_t properties_of_part, hid_t type) {
  hdf5::handle properties = properties_without_layout(properties_of_part, type);
  const hdf5::handle whole(H5Screate_simple(static_cast<int>(mapping.dims.size()), hdf5::to_hsize(mapping.dims).data(), nullptr),
                           "create a dataspace");
  for (const virtual_mapping::part& p : mapping.parts) {
    array::extents shape = p.shape;
    if (p.has_new_dimension) shape.erase(shape.begin());
    const hdf5::handle source(H5Screate_simple(static_cast<int>(shape.size()), hdf5::to_hsize(shape).data(), nullptr),
                              "create a dataspace");
    hdf5::check(H5Sselect_hyperslab(whole, H5S_SELECT_SET, hdf5::to_hsize(p.first).data(), nullptr,
                                    hdf5::to_hsize(p.shape).data(), nullptr),
                "select values");
    hdf5::check(H5Pset_virtual(properties, whole, without_patterns(p.file).c_str(), without_patterns(p.dataset).c_str(), source),
                "map a part of a virtual dataset");
  }
  return properties;
}

}  // namespace zarrbits::repacking
