// SPDX-License-Identifier: BSL-1.0
//
// The compression of re-encoded chunks.
//
//   const compression c = with_level({.kind = compressor::blosc});
//   append_codec(codecs, c, sizeof(float));
//   chunk = compress(c, std::move(chunk), sizeof(float));  // run/compress.hpp
//
#ifndef ZARRBITS_CONVERT_PLAN_COMPRESSION_HPP
#define ZARRBITS_CONVERT_PLAN_COMPRESSION_HPP

#include "hdf5/filters.hpp"

#include <zarrbits/convert.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace zarrbits::conversion {

// Throws zarrbits::error if no compressor supports this.
void check_compression(const compression& c);
// Replaces a missing level by the default.
compression with_level(compression c);
// The default compression of decoded chunks of numbers. If the source has LZ4, which is chosen for speed: LZ4 with the same
// shuffle. Otherwise: Zstandard after a shuffle. `typesize`: bytes of one number.
compression default_compression(const hdf5::pipeline& p, std::size_t typesize);
// Replaces it for chunks that get larger than in the source; none for LZ4.
std::optional<compression> fallback_compression(const compression& c);
// "none", "gzip:6", "blosc:zstd:5:bitshuffle".
std::string text_of(const compression& c);
// Blosc's name of it.
const char* to_string(blosc_compressor c) noexcept;

// True if the chunk fits: Blosc takes less than 2 GiB at once. A chunk that may be larger gets another compressor.
bool fits(const compression& c, std::uint64_t bytes);

// The size of the largest chunk that it makes of so many bytes.
std::uint64_t max_compressed_size(const compression& c, std::uint64_t bytes);

// `typesize`: bytes of one number; 1 if that is unknown.
void append_codec(text::json& codecs, const compression& c, std::size_t typesize);

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
