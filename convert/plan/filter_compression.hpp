// SPDX-License-Identifier: BSL-1.0
//
// The compression that follows from the filters of HDF5 chunks.
//
#ifndef ZARRBITS_CONVERT_PLAN_FILTER_COMPRESSION_HPP
#define ZARRBITS_CONVERT_PLAN_FILTER_COMPRESSION_HPP

#include "convert/pipeline/compression.hpp"
#include "hdf5/filters.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace zarrbits::conversion {

// The default compression of decoded chunks of numbers. If the source has LZ4, which is chosen for speed: LZ4 with the same
// shuffle. Otherwise: Zstandard after a shuffle. `typesize`: bytes of one number.
compression default_compression(const hdf5::pipeline& p, std::size_t typesize);
// Replaces it for chunks that get larger than in the source; none for LZ4.
std::optional<compression> fallback_compression(const compression& c);

// For the filters zstd and blosc.
compression compression_of(const hdf5::filter& f);
// For the filters deflate and bzip2: the level in their parameters.
int deflate_level(const hdf5::filter& f);
int bzip2_level(const hdf5::filter& f);
// The codecs of numcodecs for a pipeline's chunks, which are copied or get another frame; none if a filter has no codec, or if
// its codec refuses what the filters before it make. `chunk_bytes`: size of a chunk before the first filter.
std::optional<text::json> native_codecs(const hdf5::pipeline& p, std::uint64_t chunk_bytes);

}  // namespace zarrbits::conversion

#endif
