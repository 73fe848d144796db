// SPDX-License-Identifier: BSL-1.0
//
// Which chunks of a dataset were ever written, in time that grows with their number and not with its square.
//
#ifndef ZARRBITS_CONVERT_HDF5_CHUNK_INDEX_HPP
#define ZARRBITS_CONVERT_HDF5_CHUNK_INDEX_HPP

#include "convert/hdf5/h5.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace zarrbits::conversion {

// A regular grid of chunks over an array. Extents may be 0, chunk lengths not.
struct chunk_grid {
  std::vector<hsize_t> shape;
  std::vector<hsize_t> chunk;

  std::size_t rank() const { return shape.size(); }
  hsize_t along(std::size_t d) const { return shape[d] / chunk[d] + (shape[d] % chunk[d] != 0); }
  // Number of chunks, and of elements in one; the largest number where that does not fit.
  std::uint64_t chunks() const;
  std::uint64_t chunk_elements() const;
  // First element of a chunk, and how much of it lies inside the array.
  std::vector<hsize_t> start(std::span<const hsize_t> at) const;
  std::vector<hsize_t> inside(std::span<const hsize_t> at) const;
  bool partial(std::span<const hsize_t> at) const;
  // The next chunk in C order; false after the last. And the one with a number.
  bool next(std::vector<hsize_t>& at) const;
  std::vector<hsize_t> at(std::uint64_t number) const;
  // The chunk that holds an element, and the element's number in it, in C order.
  std::vector<hsize_t> chunk_of(std::span<const hsize_t> element) const;
  std::uint64_t number_in_chunk(std::span<const hsize_t> element) const;
  // False where the dataset's chunks are few in a grid that is far too large to be walked: they are listed, not looked up.
  bool can_be_walked(hid_t dataset) const;
};

// Product, or the largest number where it does not fit.
std::uint64_t product(std::span<const hsize_t> numbers);

// The shards of a grid of chunks are again a grid, over the chunks: its `shape` is how many chunks there are along each dimension, its `chunk`
// how many of them a shard has. Without shards each chunk is one.
chunk_grid shards_of(const chunk_grid& grid, std::vector<hsize_t> chunks_per_shard = {});
// The number of chunks in `count` shards from number `first` in C order; and a call for each, shard by shard and in each in C order, until
// `visit` returns false.
std::uint64_t chunks_in(const chunk_grid& shards, std::uint64_t first, std::uint64_t count);
void for_each_chunk(const chunk_grid& shards, std::uint64_t first, std::uint64_t count, const std::function<bool(const std::vector<hsize_t>& at)>& visit);
// Those that are wanted alone: `wanted` tells whether there is any in a box of chunks, so that the others need not be walked one by one.
using box_test = std::function<bool(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count)>;
void for_each_wanted_chunk(const chunk_grid& shards, std::uint64_t first, std::uint64_t count, const box_test& wanted,
                           const std::function<bool(const std::vector<hsize_t>&)>& visit);

// The same for the chunks that are stored, with their stored size in bytes. Where the grid cannot be walked, all shards have to be asked for.
// Throws h5::failure where libhdf5 cannot tell, or could tell only in absurd time. The caller holds h5::lock, or is alone.
void for_each_stored_chunk(hid_t dataset, const chunk_grid& grid, const chunk_grid& shards, std::uint64_t first, std::uint64_t count,
                           const std::function<bool(const std::vector<hsize_t>& at, hsize_t stored_size)>& visit);

// For all chunks, without shards.
void for_each_stored_chunk(hid_t dataset, const chunk_grid& grid,
                           const std::function<void(const std::vector<hsize_t>& at, hsize_t stored_size)>& visit);

}  // namespace zarrbits::conversion

#endif
