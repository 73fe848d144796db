// SPDX-License-Identifier: BSL-1.0
//
// A selection of a dataset's values, for <zarrbits/hdf5.hpp> and <zarrbits/hdf5_file.hpp>.
//
//   zarrbits::hdf5_box window{.first = {0, 100}, .count = {24, 50}};                    // rows 0 to 23, columns 100 to 149
//   zarrbits::hdf5_box thinned{.first = {0, 0}, .count = {12, 10}, .step = {2, 10}};    // every second row, every tenth column
//
#ifndef ZARRBITS_HDF5_BOX_HPP
#define ZARRBITS_HDF5_BOX_HPP

#include <zarrbits/detail/requirements.hpp>

#include <cstdint>
#include <vector>

namespace zarrbits {

// Elements first, first + step, ... along each dimension, `count` of them. An empty `step` is 1 along each.
struct hdf5_box {
  std::vector<std::uint64_t> first, count, step = {};
};

}  // namespace zarrbits

#endif
