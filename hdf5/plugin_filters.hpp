// SPDX-License-Identifier: BSL-1.0
//
// Filters that are not ours: szip, and the user's plugins. libhdf5 has their code, but H5Dread does not check how many bytes a
// filter returned: missing bytes would be foreign memory of this process. So we call the filter's function directly.
//
#ifndef ZARRBITS_HDF5_PLUGIN_FILTERS_HPP
#define ZARRBITS_HDF5_PLUGIN_FILTERS_HPP

#include "hdf5/filters.hpp"

namespace zarrbits::hdf5 {

// A filter of libhdf5, or of a plugin that libhdf5 finds; null if none can decode. The caller holds lock, or is alone.
const H5Z_class2_t* plugin_filter(H5Z_filter_t id);

// True if libhdf5 decodes with this filter when it reads values itself: one of its own, or a plugin. The same callers.
bool libhdf5_decodes(H5Z_filter_t id);

// Returns the filter's output, of any length up to `max_size`. Throws corrupt_chunk.
compressors::buffer decode_plugin_filter(const filter& f, std::span<const std::byte> in, std::size_t max_size);

// The reverse. Throws failure if no plugin encodes, or the filter refuses the bytes.
compressors::buffer encode_plugin_filter(const filter& f, std::span<const std::byte> in);

}  // namespace zarrbits::hdf5

#endif
