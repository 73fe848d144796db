// SPDX-License-Identifier: BSL-1.0
//
// Grids of chunks, and of shards: which chunk holds an element, and the order in which chunks come. No file is read.
//
#ifndef ZARRBITS_ARRAY_CHUNK_GRID_HPP
#define ZARRBITS_ARRAY_CHUNK_GRID_HPP

#include "array/box.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace zarrbits::array {

// Chunks of the same length that follow each other along an axis.
struct chunk_run {
  std::uint64_t length = 1, count = 0;
  std::uint64_t first_chunk = 0, first_element = 0;  // number of chunks, and of elements, before the run
};

// A grid of chunks over an array. Extents may be 0, chunk lengths may not. A regular grid has chunks of one shape; the last ones
// may reach over the edge. In a rectilinear grid the chunks differ in their length along some dimensions, and end there where the
// array ends.
struct chunk_grid {
  extents shape;
  extents chunk;  // where chunks differ, the length of the longest
  // Rectilinear: for each dimension along which chunks differ, its chunks; nothing for the others. Empty: the grid is regular.
  std::vector<std::vector<chunk_run>> runs = {};

  std::size_t rank() const { return shape.size(); }
  bool is_rectilinear() const { return !runs.empty(); }
  bool is_rectilinear(std::size_t d) const { return d < runs.size() && !runs[d].empty(); }
  // Adds chunks of this length along a dimension; `chunk` becomes the longest.
  void add_chunks(std::size_t d, std::uint64_t length, std::uint64_t count);
  std::uint64_t chunks_along(std::size_t d) const {
    if (is_rectilinear(d)) return runs[d].back().first_chunk + runs[d].back().count;
    return shape[d] / chunk[d] + (shape[d] % chunk[d] != 0);
  }
  // Along a dimension: the first element of a chunk, its length, and the chunk that holds an element.
  std::uint64_t start(std::size_t d, std::uint64_t number) const;
  std::uint64_t length(std::size_t d, std::uint64_t number) const;
  std::uint64_t chunk_of(std::size_t d, std::uint64_t element) const;
  // Number of chunks along each dimension.
  extents counts() const;
  // Number of chunks, and of elements in the largest one, or in one; saturates at the largest number.
  std::uint64_t chunks() const;
  std::uint64_t chunk_elements() const;
  std::uint64_t chunk_elements(std::span<const std::uint64_t> index) const;
  // First element of a chunk, its shape, and the shape of its part inside the array.
  extents start(std::span<const std::uint64_t> index) const;
  extents extent(std::span<const std::uint64_t> index) const;
  extents inside(std::span<const std::uint64_t> index) const;
  box box_of(std::span<const std::uint64_t> index) const { return {start(index), inside(index)}; }
  // The chunks that share elements with a box that is not empty.
  box chunks_over(const box& b) const;
  bool is_partial(std::span<const std::uint64_t> index) const;
  // The next chunk in C order; false after the last. And the chunk with a number.
  bool next(extents& index) const { return next_index(index, counts()); }
  extents chunk_at(std::uint64_t number) const { return unravel(number, counts()); }
  // The chunk that holds an element, and the element's index in it, in C order.
  extents chunk_of(std::span<const std::uint64_t> element) const;
  std::uint64_t offset_in_chunk(std::span<const std::uint64_t> element) const;
};

// The shards of a grid of chunks form a grid over the chunks: `shape` is the number of chunks along each dimension, `chunk` the
// number of chunks of a shard. Without shards, each chunk is a shard.
chunk_grid shards_of(const chunk_grid& grid, extents chunks_per_shard = {});
// chunks_in(): the number of chunks in `count` shards, starting with shard number `first` in C order. The other calls `visit` for
// each, shard by shard, in C order within each shard, until it returns false.
std::uint64_t chunks_in(const chunk_grid& shards, std::uint64_t first, std::uint64_t count);
void for_each_chunk(const chunk_grid& shards, std::uint64_t first, std::uint64_t count,
                    const std::function<bool(const extents& index)>& visit);
// Like for_each_chunk(), for matching chunks only: `matches` returns whether a box of chunks has any, so the others need not be
// walked one by one.
using box_test = std::function<bool(const extents& first, const extents& count)>;
void for_each_matching_chunk(const chunk_grid& shards, std::uint64_t first, std::uint64_t count, const box_test& matches,
                             const std::function<bool(const extents&)>& visit);

// A chunk shape of about `target` bytes whose chunks are contiguous in the array's C order.
extents chunk_shape_for(std::span<const std::uint64_t> shape, std::uint64_t element, std::uint64_t target = 8U << 20);

}  // namespace zarrbits::array

#endif
