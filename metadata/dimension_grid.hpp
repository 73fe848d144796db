// SPDX-License-Identifier: BSL-1.0
//
// Where the chunks of an array begin and end along one dimension, by the array's "chunk_grid": as many chunks of one length as
// the dimension needs, or chunks of different lengths (https://github.com/zarr-developers/zarr-extensions, "rectilinear").
//
//   const dimension_grid grid = dimension_grid::parse(lengths, 31);  // [[10, 3], 1]
//   grid.length(3);                                                  // 1
//
#ifndef ZARRBITS_METADATA_DIMENSION_GRID_HPP
#define ZARRBITS_METADATA_DIMENSION_GRID_HPP

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <vector>

namespace zarrbits::metadata {

class dimension_grid {
 public:
  // Chunks of one length, the last of which may reach over the extent. Throws parse_error if the length is 0.
  static dimension_grid regular(std::uint64_t length, std::uint64_t extent);
  // "chunk_shapes" of one dimension: a length, or a list of lengths and [length, count]. They have to cover the extent; those
  // beyond it are left out. Runs are not expanded: a few characters can say 10^18 chunks. Throws parse_error.
  static dimension_grid parse(const nlohmann::json& lengths, std::uint64_t extent);

  // True for chunks of one length, as many as the dimension needs.
  bool is_regular() const noexcept { return is_regular_; }
  std::uint64_t chunks() const noexcept { return chunks_; }
  std::uint64_t max_length() const noexcept { return max_length_; }
  // The first element of a chunk, its length, and the chunk that holds an element.
  std::uint64_t start(std::uint64_t chunk) const;
  std::uint64_t length(std::uint64_t chunk) const;
  std::uint64_t chunk_of(std::uint64_t element) const;

  // Chunks of the same length; number of chunks and elements before them.
  struct run {
    std::uint64_t length, count, first_chunk, first_element;
  };
  const std::vector<run>& runs() const noexcept { return runs_; }

 private:
  bool is_regular_ = true;
  std::uint64_t chunks_ = 0, max_length_ = 1;
  std::vector<run> runs_;  // at least one
};

}  // namespace zarrbits::metadata

#endif
