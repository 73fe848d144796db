// SPDX-License-Identifier: BSL-1.0
//
// Blosc 1: one buffer, as filter 32001 stores it and as Zarr's blosc has it.
//
#ifndef ZARRBITS_COMPRESSORS_BLOSC_HPP
#define ZARRBITS_COMPRESSORS_BLOSC_HPP

#include "compressors/buffer.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace zarrbits::compressors {

// By their codes in filter 32001: the compressors inside, and what is done before.
inline constexpr std::array<std::string_view, 6> blosc_compressor_names = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
inline constexpr std::array<std::string_view, 3> blosc_shuffle_names = {"noshuffle", "shuffle", "bitshuffle"};

buffer decompress_blosc(std::span<const std::byte> in, std::size_t size);
// The size that the buffer declares. Throws corrupt_chunk if it is not a Blosc buffer.
std::size_t blosc_size(std::span<const std::byte> in);
// Throws if a Blosc 1 buffer does not declare exactly `size` bytes, or Zarr readers cannot decode it.
void check_blosc(std::span<const std::byte> in, std::size_t size);

// Blosc takes less than 2 GiB at once.
extern const std::size_t max_blosc_bytes;
// The type size for Blosc: it treats numbers of more than 255 bytes as bytes.
std::size_t blosc_typesize(std::size_t size);
// `shuffle`: its code. `name`: of the compressor inside.
buffer blosc_buffer(std::span<const std::byte> bytes, std::size_t typesize, int level, int shuffle, const std::string& name);
// A buffer around a zlib stream, as HDF5's shuffle and deflate make it: that of Blosc with zlib, and one block. `size`: of the
// values; `typesize`: that of the shuffle. Nothing is decoded.
buffer shuffled_zlib_to_blosc(std::span<const std::byte> zlib, std::size_t size, std::size_t typesize);
// The reverse: the stream in such a buffer; empty if it has another form.
std::span<const std::byte> blosc_to_shuffled_zlib(std::span<const std::byte> in, std::size_t size, std::size_t typesize);
// If there is a buffer for them: Blosc limits the sizes of types and blocks.
bool fits_one_block(std::size_t size, std::size_t typesize);
// The size of the largest buffer of so many bytes.
std::size_t max_blosc_size(std::size_t size);
// A buffer that stores the bytes uncompressed.
buffer blosc_stored(std::span<const std::byte> bytes, std::size_t typesize);

}  // namespace zarrbits::compressors

#endif
