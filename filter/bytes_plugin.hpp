// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_FILTER_BYTES_PLUGIN_HPP
#define ZARRBITS_FILTER_BYTES_PLUGIN_HPP

#include "filter/h5_abi.hpp"

namespace zarrbits::filter {

// The bytes filter as HDF5 takes it: from a plugin, or through H5Zregister() in a program that links it.
extern const filter_class bytes_class;

}  // namespace zarrbits::filter

#endif
