// SPDX-License-Identifier: BSL-1.0
//
// Compresses chunks as planned.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_COMPRESS_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_COMPRESS_HPP

#include "convert/plan/filter_compression.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::conversion {

// `typesize`: bytes of one number; 1 if unknown. Throws corrupt_chunk if the chunk is too large.
compressors::buffer compress(const compression& c, compressors::buffer bytes, std::size_t typesize);
// Like compress(), for bytes that the caller keeps.
compressors::buffer compressed(const compression& c, std::span<const std::byte> bytes, std::size_t typesize);
// Encodes values as chunks for native_codecs().
compressors::buffer apply_native(const hdf5::pipeline& p, compressors::buffer values, std::size_t typesize);

}  // namespace zarrbits::conversion

#endif
