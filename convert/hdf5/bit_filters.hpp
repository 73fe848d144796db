// SPDX-License-Identifier: BSL-1.0
//
// libhdf5's nbit and scaleoffset, undone within bounds: its own decoders believe the parameters that the file names, and read behind
// the end of a chunk that is too short.
//
#ifndef ZARRBITS_CONVERT_HDF5_BIT_FILTERS_HPP
#define ZARRBITS_CONVERT_HDF5_BIT_FILTERS_HPP

#include "convert/hdf5/filters.hpp"

namespace zarrbits::conversion {

// `size`: of the chunk before the filter. Throw damaged_chunk.
buffer undo_nbit(const filter& f, buffer in, std::size_t size);
buffer undo_scaleoffset(const filter& f, buffer in, std::size_t size);

}  // namespace zarrbits::conversion

#endif
