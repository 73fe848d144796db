// SPDX-License-Identifier: BSL-1.0
//
// The requested shapes of chunks and shards.
//
//   choose_grid(data, {.chunk = {100, 200}, .shard = {.bytes = 64 << 20}});
//
#ifndef ZARRBITS_CONVERT_PLAN_CHUNK_GRID_CHOICE_HPP
#define ZARRBITS_CONVERT_PLAN_CHUNK_GRID_CHOICE_HPP

#include "hdf5/chunk_source.hpp"
#include "text/json_text.hpp"

#include <zarrbits/convert.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace zarrbits::conversion {

// Throws zarrbits::error if no dataset can have such chunks, or shards.
void check_grid(const std::vector<std::uint64_t>& chunk, const shard_size& shard);

// The number of chunks in a shard along each dimension. For a shape: enough to cover it. For a limit in bytes before compression:
// as many as fit, so that a shard is contiguous in C order of chunks. {1, 1, ...}: no shards. Throws zarrbits::error.
array::extents chunks_per_shard(const shard_size& requested, const array::chunk_grid& grid, std::uint64_t element_size);

// Chooses the grid of the dataset's array, and its shards: the source's chunks if there are any and no others are requested, else
// a sensible shape. Throws unsupported_dataset, and zarrbits::error if the shards are impossible.
void choose_grid(hdf5::chunk_source& data, const convert_options& options);
// "chunk_shapes" of a rectilinear grid in its array's metadata; the array has further dimensions after those of the grid.
text::json chunk_shapes_of(const array::chunk_grid& grid, const std::vector<std::uint64_t>& shape,
                           const std::vector<std::uint64_t>& chunk);
// What of a joined array's stored chunks is kept on either grid; none if that makes no difference, or it cannot have the other.
struct grid_comparison {
  hdf5::reused_chunks regular, rectilinear;
};
std::optional<grid_comparison> compare_grids(const hdf5::chunk_source& data);

}  // namespace zarrbits::conversion

#endif
