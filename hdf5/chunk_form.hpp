// SPDX-License-Identifier: BSL-1.0
//
// The properties, besides datatype and chunk shape, that decide whether stored chunks of one dataset can be chunks of another.
//
#ifndef ZARRBITS_HDF5_CHUNK_FORM_HPP
#define ZARRBITS_HDF5_CHUNK_FORM_HPP

#include "hdf5/h5.hpp"

#include <string>

namespace zarrbits::hdf5 {

// The fill value as a value of `type`; empty if undefined, or not a plain value.
std::string fill_bytes(hid_t creation_properties, hid_t type);

// Layout, filters (without the level of deflate, which no decoder needs) and fill value, as a text: equal forms have equal texts.
std::string chunk_form(hid_t creation_properties, hid_t type);

}  // namespace zarrbits::hdf5

#endif
