// SPDX-License-Identifier: BSL-1.0
//
// Decoders that libhdf5 is lent.
//
#ifndef ZARRBITS_CONVERT_HDF5_LENT_DECODERS_HPP
#define ZARRBITS_CONVERT_HDF5_LENT_DECODERS_HPP

#include <hdf5.h>

namespace zarrbits::conversion {

// Lets libhdf5 itself decode the filters of a dataset or a group, where it has none of its own: for values that only libhdf5 can
// read (strings and sequences, which lie outside of their chunks). Not all at once, for libhdf5 looks for each in all plugins.
void register_decoders(hid_t creation_properties);

}  // namespace zarrbits::conversion

#endif
