// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_HDF5_TYPE_OVERRIDE_HPP
#define ZARRBITS_HDF5_TYPE_OVERRIDE_HPP

#include "hdf5/source_file.hpp"
#include "hdf5/type_description.hpp"

namespace zarrbits::hdf5 {

// What the values of a dataset are by its convention, where their HDF5 type does not say.
void apply_type_override(type_description& type, const schema_override& arranged);

}  // namespace zarrbits::hdf5

#endif
