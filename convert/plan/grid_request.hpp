// SPDX-License-Identifier: BSL-1.0
//
// The shapes that are asked for, of chunks and of shards.
//
//   const grid_request shard = parse_grid_request("--shard", "64M");
//   const grid_request chunk = parse_grid_request("--chunk", "100,200");
//
#ifndef ZARRBITS_CONVERT_PLAN_GRID_REQUEST_HPP
#define ZARRBITS_CONVERT_PLAN_GRID_REQUEST_HPP

#include "convert/hdf5/source_dataset.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// "512M", "2G", "1048576", "64kiB". Throws convert_error.
std::uint64_t parse_bytes(const std::string& option, const std::string& text);

// Elements along each dimension, or bytes, or neither.
struct grid_request {
  std::vector<hsize_t> shape = {};  // for datasets of this rank; others stay as they are
  std::uint64_t bytes = 0;

  bool empty() const { return shape.empty() && bytes == 0; }
};

// "100,200" is a shape; one of a single dimension is "100,". All else is a number of bytes, but "", which asks for nothing.
// Throws convert_error.
grid_request parse_grid_request(const std::string& option, const std::string& text);

// How many chunks a shard has along each dimension: of a shape so many that it is covered; of bytes, before compression, no more
// than they hold, and so that a shard is a range of the chunks in C order. {1, 1, ...}: no shards. Throws convert_error.
std::vector<hsize_t> chunks_per_shard(const grid_request& wanted, const chunk_grid& grid, std::uint64_t element_size);

// The grid of the array that a dataset becomes: of the source where it has chunks and no others are asked for, else a sensible
// one; and its shards. Throws skip_dataset, and convert_error where the shards are impossible.
void choose_grid(source_dataset& data, const grid_request& chunk, const grid_request& shard);

}  // namespace zarrbits::conversion

#endif
