// SPDX-License-Identifier: BSL-1.0
//
// The compression of re-encoded chunks.
//
//   const compression c = with_level({.kind = compressor::blosc});
//   append_codec(codecs, c, sizeof(float));
//   chunk = compress(c, std::move(chunk), sizeof(float));  // from_hdf5/compress.hpp
//
#ifndef ZARRBITS_CONVERT_PIPELINE_COMPRESSION_HPP
#define ZARRBITS_CONVERT_PIPELINE_COMPRESSION_HPP

#include "text/json_text.hpp"

#include <zarrbits/convert.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace zarrbits::conversion {

// Throws zarrbits::error if no compressor supports this.
void check_compression(const compression& c);
// Replaces a missing level by the default.
compression with_level(compression c);
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

}  // namespace zarrbits::conversion

#endif
