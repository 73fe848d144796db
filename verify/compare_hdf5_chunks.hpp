// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_VERIFY_COMPARE_HDF5_CHUNKS_HPP
#define ZARRBITS_VERIFY_COMPARE_HDF5_CHUNKS_HPP

#include "hdf5/open_source.hpp"

#include <cstdint>
#include <hdf5.h>
#include <vector>

namespace zarrbits::verification {

struct chunked_dataset {
  hid_t id, properties;
  const hdf5::opened_source& file;
};

// True if two chunked datasets of the same extent have the same chunks, as they are stored, and the same filters. Decodes
// nothing. Throws source_error, hdf5::failure, io::read_error.
bool has_same_stored_chunks(const chunked_dataset& first, const chunked_dataset& second, const std::vector<std::uint64_t>& dims);

}  // namespace zarrbits::verification

#endif
