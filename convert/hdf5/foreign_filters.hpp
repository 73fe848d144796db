// SPDX-License-Identifier: BSL-1.0
//
// Filters that are not ours: szip, and the user's plugins. libhdf5 has the code, but H5Dread does not look at how many bytes a
// filter returned: what is missing would be memory of this process. So the filter's own function is called, with nothing around
// it.
//
#ifndef ZARRBITS_CONVERT_HDF5_FOREIGN_FILTERS_HPP
#define ZARRBITS_CONVERT_HDF5_FOREIGN_FILTERS_HPP

#include "convert/hdf5/filters.hpp"

namespace zarrbits::conversion {

// libhdf5's, or of a plugin that libhdf5 finds; null where there is none that decodes. The caller holds h5::lock, or is alone.
const H5Z_class2_t* foreign_filter(H5Z_filter_t id);

// What the filter makes of it, of whatever length up to `most`. Throws damaged_chunk.
buffer undo_foreign(const filter& f, std::span<const std::byte> in, std::size_t most);

}  // namespace zarrbits::conversion

#endif
