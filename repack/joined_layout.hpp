// SPDX-License-Identifier: BSL-1.0
//
// A dataset that gets the values of several files, after it was created.
//
#ifndef ZARRBITS_REPACK_JOINED_LAYOUT_HPP
#define ZARRBITS_REPACK_JOINED_LAYOUT_HPP

#include "array/extents.hpp"
#include "hdf5/filters.hpp"
#include "hdf5/h5.hpp"

#include <vector>

namespace zarrbits::repacking {

struct joined_layout {
  array::extents dims, max_dims;
  array::extents chunk;               // empty: contiguous
  std::vector<hdf5::filter> filters;  // of the chunks
  hid_t type = H5I_INVALID_HID;       // another one than that of the parts, if set; not owned
};

// Properties with the fill value and the order of attributes of one of its parts, which has the type; but no filters. And the
// dataspace. Throw hdf5::failure.
hdf5::handle joined_properties(const joined_layout& layout, hid_t properties_of_part, hid_t type);
hdf5::handle joined_space(const joined_layout& layout);

}  // namespace zarrbits::repacking

#endif
