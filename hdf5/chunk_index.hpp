// SPDX-License-Identifier: BSL-1.0
//
// Finds the chunks of a dataset that were ever written, in linear time.
//
#ifndef ZARRBITS_HDF5_CHUNK_INDEX_HPP
#define ZARRBITS_HDF5_CHUNK_INDEX_HPP

#include "array/chunk_grid.hpp"
#include "hdf5/h5.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace zarrbits::hdf5 {

// False if the dataset has few chunks in a grid that is far too large to walk: they are listed, not looked up.
bool can_be_walked(const array::chunk_grid& grid, hid_t dataset);

// Stored size in bytes of the chunk that begins at the element `first`; 0 if it was never written. Throws failure if the
// index cannot be read: that is different from a chunk that was never written. After H5Dread of a chunk without filters that was
// never written, libhdf5 reports a size: source_dataset::stored_size() does not.
std::uint64_t stored_size(hid_t dataset, const array::extents& first);

// array::for_each_chunk() for stored chunks, with their stored size in bytes. If the grid cannot be walked, the caller must ask
// for all shards. Throws failure if libhdf5 cannot find them, or would take absurdly long. The caller holds lock, or is alone.
void for_each_stored_chunk(hid_t dataset, const array::chunk_grid& grid, const array::chunk_grid& shards, std::uint64_t first,
                           std::uint64_t count,
                           const std::function<bool(const array::extents& index, std::uint64_t stored_size)>& visit);

// For all chunks, without shards.
void for_each_stored_chunk(hid_t dataset, const array::chunk_grid& grid,
                           const std::function<void(const array::extents& index, std::uint64_t stored_size)>& visit);

}  // namespace zarrbits::hdf5

#endif
