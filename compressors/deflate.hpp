// SPDX-License-Identifier: BSL-1.0
//
// Deflate: zlib streams, as HDF5 stores them, and gzip members, as Zarr's gzip has them.
//
#ifndef ZARRBITS_COMPRESSORS_DEFLATE_HPP
#define ZARRBITS_COMPRESSORS_DEFLATE_HPP

#include "compressors/buffer.hpp"

#include <cstddef>
#include <span>

namespace zarrbits::compressors {

// Decodes a zlib stream of exactly `size`, or at most `max_size`, bytes. Checks its Adler-32. Throws corrupt_chunk.
buffer decompress_zlib(std::span<const std::byte> zlib, std::size_t size);
buffer decompress_zlib_up_to(std::span<const std::byte> zlib, std::size_t max_size);
// A zlib stream, or consecutive gzip members, of unknown size. `likely_size`: that of a sound chunk, or 0. Throws limit_exceeded
// for more than `max_size` bytes, and corrupt_chunk.
buffer decompress_zlib_up_to(std::span<const std::byte> zlib, std::size_t likely_size, std::size_t max_size);
buffer decompress_gzip_up_to(std::span<const std::byte> gzip, std::size_t likely_size, std::size_t max_size);
buffer zlib_stream(std::span<const std::byte> bytes, int level);
// The size of the stream that zlib itself makes at this level.
std::size_t size_by_zlib(std::span<const std::byte> bytes, int level);

// A zlib stream as a gzip member with the same deflate payload. The stream is inflated once, to check it and for the CRC; `plain`
// receives the decoded bytes.
buffer zlib_to_gzip(std::span<const std::byte> zlib, std::size_t size, buffer& plain);
// A gzip member as a zlib stream with the same deflate payload. It is inflated once, to check it and for the Adler-32. Empty if
// there are several members, or bytes after the first.
buffer gzip_to_zlib(std::span<const std::byte> gzip, std::size_t size);
buffer gzip_member(std::span<const std::byte> bytes, int level);
// The size of the largest gzip member of so many bytes.
std::size_t max_gzip_size(std::size_t size);

}  // namespace zarrbits::compressors

#endif
