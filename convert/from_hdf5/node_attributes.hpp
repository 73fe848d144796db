// SPDX-License-Identifier: BSL-1.0
//
// The attributes of one object of the source as those of a node.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_NODE_ATTRIBUTES_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_NODE_ATTRIBUTES_HPP

#include "convert/from_hdf5/hdf5_source.hpp"
#include "hdf5/attributes.hpp"

#include <vector>

namespace zarrbits::conversion {

// In the form of the convention. `leaf`: the element type of a dataset that becomes an array, else null. Throws hdf5::failure.
text::json node_attributes(hdf5_source& source, const hdf5::source_object& node, hid_t object, const hdf5::type_description* leaf,
                           std::vector<hdf5::attribute_report>& report);

}  // namespace zarrbits::conversion

#endif
