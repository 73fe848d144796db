// SPDX-License-Identifier: BSL-1.0
//
// Decoders of compressed chunks that HDF5 files hold and libhdf5 itself cannot read. All input is hostile: nothing is read or
// written outside the spans, and what does not fit throws damaged_chunk.
//
#ifndef ZARRBITS_CONVERT_HDF5_DECOMPRESSORS_HPP
#define ZARRBITS_CONVERT_HDF5_DECOMPRESSORS_HPP

#include "convert/hdf5/filters.hpp"

namespace zarrbits::conversion {

buffer undo_lzf(std::span<const std::byte> in, std::size_t size);
// Filter 32004: blocks of LZ4 with big-endian lengths.
buffer undo_lz4(std::span<const std::byte> in, std::size_t size);
// Filter 32008: bits transposed in blocks, then nothing, LZ4 or Zstandard.
buffer undo_bitshuffle(std::span<const unsigned> values, std::span<const std::byte> in, std::size_t size);
// Filter 32001: one Blosc 1 buffer.
buffer undo_blosc(std::span<const std::byte> in, std::size_t size);
// Filter 32015: one Zstandard frame.
buffer undo_zstd(std::span<const std::byte> in, std::size_t size);

// Filter 307: one bzip2 stream.
buffer undo_bzip2(std::span<const std::byte> in, std::size_t size);
buffer undo_bzip2_up_to(std::span<const std::byte> in, std::size_t most);

// How long the stream says that it becomes; the largest number where it does not say.
std::size_t announced_size(const filter& f, std::span<const std::byte> in);

// Lets libhdf5 itself decode the filters of a dataset or a group, where it has none of its own: for values that only libhdf5 can read (strings
// and sequences, which lie outside of their chunks). Not all at once, for libhdf5 looks for each in all plugins.
void register_decoders(hid_t creation_properties);

buffer zstd_frame(std::span<const std::byte> bytes, int level);
buffer bzip2_stream(std::span<const std::byte> bytes, int level);
// As numcodecs frames LZ4: the length in 4 bytes, little-endian, and one block.
buffer numcodecs_lz4(std::span<const std::byte> bytes);
// The same from a chunk of filter 32004 that is one block, which is kept; nothing where it is several, or not compressed.
std::optional<buffer> numcodecs_lz4_of(std::span<const std::byte> in, std::size_t size);
// A Blosc 1 buffer that holds the bytes as they are.
buffer blosc_stored(std::span<const std::byte> bytes, std::size_t typesize);
// Throws where a Blosc 1 buffer does not announce exactly `size` bytes, or is none that Zarr readers decode.
void check_blosc(std::span<const std::byte> in, std::size_t size);

}  // namespace zarrbits::conversion

#endif
