// SPDX-License-Identifier: BSL-1.0
//
// Creation properties of the objects in a file.
//
#ifndef ZARRBITS_EXPORT_PROPERTY_LISTS_HPP
#define ZARRBITS_EXPORT_PROPERTY_LISTS_HPP

#include "hdf5/h5.hpp"

namespace zarrbits::exporting {

// Without the time: one store becomes one file, whenever it is made.
inline hdf5::handle make_property_list(hid_t kind) {
  hdf5::handle properties(H5Pcreate(kind), "create properties");
  hdf5::check(H5Pset_obj_track_times(properties, false), "leave out times");
  return properties;
}

}  // namespace zarrbits::exporting

#endif
