// SPDX-License-Identifier: BSL-1.0
//
// Our decoders, registered as filters of libhdf5.
//
#ifndef ZARRBITS_HDF5_REGISTERED_DECODERS_HPP
#define ZARRBITS_HDF5_REGISTERED_DECODERS_HPP

#include <hdf5.h>

namespace zarrbits::hdf5 {

// What becomes of values that libhdf5 writes with a filter that it has no encoder of: an error; or, if the filter is optional,
// chunks that are stored without it.
enum class missing_encoder { refuse, leave_out };

// Registers our decoders in libhdf5 for the filters of a dataset or a group, if libhdf5 has none of its own. Only libhdf5 can
// read some values: strings and sequences, which are outside their chunks. Not all decoders are registered at once, because
// libhdf5 searches all plugins for each.
void register_decoders(hid_t creation_properties, missing_encoder encoders = missing_encoder::refuse);

}  // namespace zarrbits::hdf5

#endif
