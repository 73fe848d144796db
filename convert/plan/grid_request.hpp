// SPDX-License-Identifier: BSL-1.0
//
// The shapes that are asked for, of chunks and of shards.
//
//   choose_grid(data, {100, 200}, {.bytes = 64 << 20});
//
#ifndef ZARRBITS_CONVERT_PLAN_GRID_REQUEST_HPP
#define ZARRBITS_CONVERT_PLAN_GRID_REQUEST_HPP

#include "convert/hdf5/source_dataset.hpp"

#include <zarrbits/convert.hpp>

#include <cstdint>
#include <vector>

namespace zarrbits::conversion {

// Throws convert_error where no dataset can have such chunks, or shards.
void check_grid(const std::vector<std::uint64_t>& chunk, const shard_size& shard);

// How many chunks a shard has along each dimension: of a shape so many that it is covered; of bytes, before compression, no more
// than they hold, and so that a shard is a range of the chunks in C order. {1, 1, ...}: no shards. Throws convert_error.
std::vector<hsize_t> chunks_per_shard(const shard_size& wanted, const chunk_grid& grid, std::uint64_t element_size);

// The grid of the array that a dataset becomes: of the source where it has chunks and no others are asked for, else a sensible
// one; and its shards. Throws skip_dataset, and convert_error where the shards are impossible.
void choose_grid(source_dataset& data, const std::vector<std::uint64_t>& chunk, const shard_size& shard);

}  // namespace zarrbits::conversion

#endif
