// SPDX-License-Identifier: BSL-1.0
//
// Chunks of HDF5 datasets, decoded and encoded without libhdf5: those that H5Dread_chunk() returns and H5Dwrite_chunk() takes, or
// whose bytes come from elsewhere.
//
//   const std::vector<zarrbits::hdf5::chunk_filter> filters = {{2, {4}}, {1, {6}}};   // shuffle of 4 bytes, deflate
//   if (zarrbits::hdf5::has_decoders(filters)) zarrbits::hdf5::decode_chunk(filters, mask, stored, values);
//   if (zarrbits::hdf5::has_encoders(filters)) stored = zarrbits::hdf5::encode_chunk(filters, values);
//
// Part of zarrbits::convert. Callable from any thread.
//
#ifndef ZARRBITS_HDF5_DECODERS_HPP
#define ZARRBITS_HDF5_DECODERS_HPP

#include <zarrbits/error.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace zarrbits::hdf5 {

// A filter, with the parameters (cd_values) that the dataset has.
struct chunk_filter {
  int id = 0;                         // its number: 1 is deflate
  std::vector<unsigned> values = {};  // its parameters
};

// True if decode_chunk() decodes all of them: deflate, shuffle, fletcher32, nbit, scaleoffset, bzip2, LZO, LZF, Blosc, LZ4,
// bitshuffle and Zstandard. packbits and bytes need the type of the values, and are not among them.
bool has_decoders(std::span<const chunk_filter> filters) noexcept;

// Decodes a chunk whose filters were applied in this order. `mask`: bit i is set if filter i was left out. `values`: the whole
// chunk, as stored. Throws error: damaged_source if the filters cannot have made the chunk, unsupported without has_decoders().
void decode_chunk(std::span<const chunk_filter> filters, unsigned mask, std::span<const std::byte> stored,
                  std::span<std::byte> values);

// True if encode_chunk() encodes with all of them: deflate, shuffle, fletcher32, bzip2, LZ4, Blosc and Zstandard.
bool has_encoders(std::span<const chunk_filter> filters) noexcept;

// Encodes a whole chunk with all filters, for a filter mask of 0. Every reader decodes it to the same values; the bytes may
// differ from those of libhdf5's filters and of plugins. Throws error: unsupported without has_encoders(), io_failed if a filter
// fails.
std::vector<std::byte> encode_chunk(std::span<const chunk_filter> filters, std::span<const std::byte> values);

}  // namespace zarrbits::hdf5

#endif
