// SPDX-License-Identifier: BSL-1.0
//
// The values of links that are not hard.
//
#ifndef ZARRBITS_HDF5_LINK_VALUE_HPP
#define ZARRBITS_HDF5_LINK_VALUE_HPP

#include "hdf5/h5.hpp"

#include <string>

namespace zarrbits::hdf5 {

// As libhdf5 has it: of soft and external links with zeros between and after their parts. libhdf5 returns nothing of user-defined
// links whose class is not registered. Throws failure.
std::string link_value(hid_t group, const std::string& name);

// Registers a class of user-defined links, if libhdf5 knows none: then it returns their values, and creates such links. Throws
// failure.
void register_link_class(H5L_type_t type);

}  // namespace zarrbits::hdf5

#endif
