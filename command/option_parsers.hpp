// SPDX-License-Identifier: BSL-1.0
//
// Parses the options of `zarrbits convert` into the types of zarrbits/convert.hpp. "" is an option that was not given.
//
//   options.compress = parse_compression("blosc:zstd:5:shuffle");
//   options.encoding.shard = parse_shard("--shard", "64M");
//
// All throw usage_error.
//
#ifndef ZARRBITS_COMMAND_OPTION_PARSERS_HPP
#define ZARRBITS_COMMAND_OPTION_PARSERS_HPP

#include <zarrbits/convert.hpp>
#include <zarrbits/file_format.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::command {

// "portable", "native", "recode".
std::optional<profile> parse_profile(const std::string& text);

// "none", "netcdf", "anndata", "nwb", "nexus", "matlab", "pytables".
std::optional<convention> parse_convention(const std::string& text);

// "given", "name", "value"; "refuse", "first", "skip".
concatenation::order_type parse_order(const std::string& text);
concatenation::different_type parse_different(const std::string& text);

// "keep", "copy", "refuse".
std::optional<link_policy> parse_links(const std::string& text);

// "none", "gzip:6", "zstd:3", "blosc:lz4:5", "blosc:zstd:5:bitshuffle"; levels and shuffle may be left out.
std::optional<compression> parse_compression(const std::string& text);

// "compatible", "latest".
file_format parse_libver(const std::string& text);

// "bytes", "packbits".
array_codec parse_array_codec(const std::string& text);

// "regular", "rectilinear".
grid_type parse_grid(const std::string& text);

// "crc32c".
checksum parse_checksum(const std::string& text);

// "2", "3", "both".
std::optional<zarr_format> parse_zarr_format(const std::string& text);

// "https://host/path", "/folder=s3://bucket/path", ".".
std::optional<source_base> parse_base(const std::string& text);

// "512M", "2G", "1048576", "64kiB".
std::uint64_t parse_bytes(const std::string& option, const std::string& text);

// A number of threads, "1" to "1024"; 0 is the default of the libraries.
unsigned parse_threads(const std::string& text);

// "12" are bits 0 to 11, "2-11" bits 2 to 11.
struct bit_range {
  unsigned first = 0, last = 0;
};
bit_range parse_bit_range(const std::string& option, const std::string& text);

// "100,200" and "100x200" are shapes, "100," is a shape of rank 1. "none" is room for one chunk. All else is a number of bytes.
std::optional<shard_size> parse_shard(const std::string& option, const std::string& text);
std::vector<std::uint64_t> parse_shape(const std::string& option, const std::string& text);

// "time:768,lat:-1" and "t2m=time:768": lengths of chunks along dimensions. -1 is the whole dimension.
dimension_chunks parse_dimension_chunks(const std::string& option, const std::string& text);

}  // namespace zarrbits::command

#endif
