// SPDX-License-Identifier: BSL-1.0
//
// How chunks are compressed that are encoded anew.
//
//   const compression c = with_level({.kind = compressor::blosc});
//   append_codec(codecs, c, sizeof(float));
//   chunk = compress(c, std::move(chunk), sizeof(float));  // run/compress.hpp
//
#ifndef ZARRBITS_CONVERT_PLAN_COMPRESSION_HPP
#define ZARRBITS_CONVERT_PLAN_COMPRESSION_HPP

#include "convert/hdf5/filters.hpp"

#include <zarrbits/convert.hpp>

#include <optional>
#include <string>

namespace zarrbits::conversion {

// Throws convert_error where nobody can compress so.
void check_compression(const compression& c);
// The usual level in the place of none.
compression with_level(compression c);
// How chunks of numbers are compressed that are decoded, where nothing was asked for: what was chosen for speed as LZ4, with the
// shuffle that it had; all else as Zstandard after a shuffle. `typesize`: bytes of one number.
compression usual_compression(const pipeline& p, std::size_t typesize);
// For the chunks that this makes larger than they are in the source; nothing where LZ4 was chosen.
std::optional<compression> stronger(const compression& c);
// "none", "gzip:6", "blosc:zstd:5:bitshuffle".
std::string text_of(const compression& c);
// As Blosc calls it.
const char* to_string(blosc_compressor c) noexcept;

// Blosc takes less than 2 GiB at once; what may be larger is compressed otherwise.
bool fits(const compression& c, std::uint64_t bytes);

// `typesize`: bytes of one number; 1 where that says nothing.
void append_codec(json& codecs, const compression& c, std::size_t typesize);

// Of the filters zstd and blosc.
compression compression_of(const filter& f);
// Of the filters deflate and bzip2: the level that they were applied with.
int deflate_level(const filter& f);
int bzip2_level(const filter& f);
// The codecs that a pipeline's chunks have as they are, or with another frame, by the names of numcodecs; nothing where a filter
// has none.
std::optional<json> native_codecs(const pipeline& p);

}  // namespace zarrbits::conversion

#endif
