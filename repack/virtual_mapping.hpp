// SPDX-License-Identifier: BSL-1.0
//
// A dataset whose values are in the datasets of other files, or are written into it later.
//
#ifndef ZARRBITS_REPACK_VIRTUAL_MAPPING_HPP
#define ZARRBITS_REPACK_VIRTUAL_MAPPING_HPP

#include "array/extents.hpp"
#include "hdf5/h5.hpp"

#include <string>
#include <vector>

namespace zarrbits::repacking {

struct virtual_mapping {
  struct part {
    std::string file;                // as the new file names it
    std::string dataset;             // path in that file
    array::extents first, shape;     // of the box that all of the dataset's values fill
    bool has_new_dimension = false;  // the first one, of length 1, which the dataset does not have
  };
  array::extents dims;
  std::vector<part> parts;       // none: values are written later
  hid_t type = H5I_INVALID_HID;  // another one than that of the parts, if set; not owned
};

// The fill value and the order of attributes of a dataset that has the type, and nothing else of its properties. Throws
// hdf5::failure.
hdf5::handle properties_without_layout(hid_t properties_of_part, hid_t type);

// Properties for a virtual dataset with the fill value and the order of attributes of one of its parts, which has the type.
// Throws hdf5::failure.
hdf5::handle virtual_properties(const virtual_mapping& mapping, hid_t properties_of_part, hid_t type);

}  // namespace zarrbits::repacking

#endif
