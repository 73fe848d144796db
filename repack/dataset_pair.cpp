// SPDX-License-Identifier: BSL-1.0
#include "repack/dataset_pair.hpp"

#include <algorithm>

namespace zarrbits::repacking {

std::vector<std::uint64_t> dataset_pair::needed_chunks() const {
  std::vector<std::uint64_t> needed;
  const array::extents counts = grid.counts();
  if (chunks) {
    chunks->for_each([&](const array::extents& index, std::uint64_t) {
      if (chunks->grid().chunk == grid.chunk) return needed.push_back(array::ravel(index, counts));
      array::for_each_index(grid.chunks_over(chunks->grid().box_of(index)), [&](const array::extents& chunk) {
        const std::uint64_t number = array::ravel(chunk, counts);
        if (needed.empty() || needed.back() != number) needed.push_back(number);
      });
    });
    std::sort(needed.begin(), needed.end());
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  } else if (layout.stored_bytes > 0) {
    needed.resize(static_cast<std::size_t>(grid.chunks()));
    for (std::size_t i = 0; i < needed.size(); ++i) needed[i] = i;
  }
  return needed;
}

hdf5::handle space_of(const array::extents& shape) {
  return {shape.empty() ? H5Screate(H5S_SCALAR)
                        : H5Screate_simple(static_cast<int>(shape.size()), hdf5::to_hsize(shape).data(), nullptr),
          "create a dataspace"};
}

hdf5::handle selected_space(hid_t dataset, const array::box& b) {
  hdf5::handle space(H5Dget_space(dataset), "get the dataspace");
  if (b.first.empty()) return space;
  hdf5::check(H5Sselect_hyperslab(space, H5S_SELECT_SET, hdf5::to_hsize(b.first).data(), nullptr, hdf5::to_hsize(b.shape).data(),
                                  nullptr),
              "select values");
  return space;
}

}  // namespace zarrbits::repacking
