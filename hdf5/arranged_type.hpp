// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_HDF5_ARRANGED_TYPE_HPP
#define ZARRBITS_HDF5_ARRANGED_TYPE_HPP

#include "hdf5/source_file.hpp"
#include "hdf5/type_tree.hpp"

namespace zarrbits::hdf5 {

// What the values of a dataset are by its convention, where their HDF5 type does not say.
void arrange_type(type_tree& type, const arrangement& arranged);

}  // namespace zarrbits::hdf5

#endif
