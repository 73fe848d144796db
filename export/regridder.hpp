// SPDX-License-Identifier: BSL-1.0
//
// The chunks of a dataset, all of one shape, cut from those of an array whose chunks have different lengths.
//
#ifndef ZARRBITS_EXPORT_REGRIDDER_HPP
#define ZARRBITS_EXPORT_REGRIDDER_HPP

#include "array/chunk_grid.hpp"
#include "export/dataset_spec.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace zarrbits::exporting {

class regridder {
 public:
  using chunk_index = array::extents;

  // `stored`: the chunks of the array that exist. Throws zarr::not_supported if the list of parts takes more than
  // `memory`.
  regridder(const conversion::source_array& array, const dataset_spec& form, std::vector<chunk_index> stored,
            std::uint64_t memory);

  // The chunks of the dataset that have something of these, in order.
  std::vector<chunk_index> chunks() const;
  // The elements of one of them, by its number; those that are in no chunk have the fill value. Empty if no chunk is there any
  // more. Adds the size of the stored chunks that begin in it to `stored`. Callable from several threads, each with an array of
  // its own. Throws store_error.
  std::optional<std::vector<std::byte>> elements(const conversion::source_array& array, std::size_t number,
                                                 std::uint64_t& stored) const;

 private:
  void add_parts(const conversion::source_array& array, std::size_t stored, std::size_t max_parts);

  array::chunk_grid grid_;  // of the dataset, in the dimensions of the array
  std::vector<chunk_index> stored_;
  std::vector<std::pair<chunk_index, std::size_t>> parts_;  // chunks of the dataset, each with one of stored_
  std::vector<std::size_t> first_;                          // of the parts of each chunk; and their end
};

}  // namespace zarrbits::exporting

#endif
