// SPDX-License-Identifier: BSL-1.0
//
// <zarrbits/hdf5.h> in a C++ file, with every warning that we use, and the constants without hdf5.h.
#include <zarrbits/hdf5.h>

static_assert(ZARRBITS_HDF5_PACKBITS_ID != ZARRBITS_HDF5_BYTES_ID);
static_assert((ZARRBITS_HDF5_PADDING_LAST_BYTE | ZARRBITS_HDF5_RANGE_REPORT | ZARRBITS_HDF5_MSB_FIRST) == 26u);

herr_t header_in_cxx(hid_t dcpl);
herr_t header_in_cxx(hid_t dcpl) {
  return H5Pset_zarrbits_packbits(dcpl, 12, ZARRBITS_HDF5_RANGE_RAW, 0) < 0 ? -1 : H5Pset_zarrbits_bytes(dcpl, 0);
}
