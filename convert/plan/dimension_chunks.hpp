// SPDX-License-Identifier: BSL-1.0
//
// The lengths of chunks that are requested by the names of dimensions.
//
//   use_dimension_chunks(options.chunk_along, "/t2m", {"time", "lat", "lon"}, shape, chunk);
//
#ifndef ZARRBITS_CONVERT_PLAN_DIMENSION_CHUNKS_HPP
#define ZARRBITS_CONVERT_PLAN_DIMENSION_CHUNKS_HPP

#include "array/chunk_grid.hpp"

#include <zarrbits/convert_options.hpp>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// Changes `chunk` along the requested dimensions of an array; true if it has one. A dimension without a name has "". Lengths are
// clipped to the shape, except along `growing`.
bool use_dimension_chunks(const std::vector<dimension_chunks>& requested, const std::string& path,
                          const std::vector<std::string>& names, const array::extents& shape, array::extents& chunk,
                          std::optional<std::size_t> growing = {});

// Throws zarrbits::error if a pattern or a length can never be right.
void check_dimension_chunks(const std::vector<dimension_chunks>& requested);

// Finds what no array has.
class dimension_chunks_check {
 public:
  explicit dimension_chunks_check(const std::vector<dimension_chunks>& requested);
  void add(const std::string& path, const std::vector<std::string>& names);
  // Throws zarrbits::error for a pattern that matches no array, and for a dimension that none of the arrays has that it matches.
  void require_all_matched() const;

 private:
  struct entry {
    const dimension_chunks* requested;
    bool matched = false;
    std::set<std::string> names;  // of the dimensions of arrays that it matches
  };
  std::vector<entry> entries_;
};

}  // namespace zarrbits::conversion

#endif
