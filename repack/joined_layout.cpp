// SPDX-License-Identifier: BSL-1.0
#include "repack/joined_layout.hpp"

#include "repack/virtual_mapping.hpp"

namespace zarrbits::repacking {

hdf5::handle joined_properties(const joined_layout& layout, hid_t properties_of_part, hid_t type) {
  hdf5::handle properties = properties_without_layout(properties_of_part, type);
  if (!layout.chunk.empty())
    hdf5::check(H5Pset_chunk(properties, static_cast<int>(layout.chunk.size()), hdf5::to_hsize(layout.chunk).data()),
                "set the shape of chunks");
  return properties;
}

hdf5::handle joined_space(const joined_layout& layout) {
  return {H5Screate_simple(static_cast<int>(layout.dims.size()), hdf5::to_hsize(layout.dims).data(),
                           hdf5::to_hsize(layout.max_dims).data()),
          "create a dataspace"};
}

}  // namespace zarrbits::repacking
