// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_FILTER_PLUGINS_HPP
#define ZARRBITS_FILTER_PLUGINS_HPP

#include "filter/h5_abi.hpp"

namespace zarrbits::filter {

// The filters as HDF5 takes them: from a plugin, or through H5Zregister() in a program that links them.
extern const filter_class packbits_class, bytes_class;

}  // namespace zarrbits::filter

#endif
