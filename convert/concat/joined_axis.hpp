// SPDX-License-Identifier: BSL-1.0
//
// The axis along which a dataset is joined.
//
#ifndef ZARRBITS_CONVERT_CONCAT_JOINED_AXIS_HPP
#define ZARRBITS_CONVERT_CONCAT_JOINED_AXIS_HPP

#include "hdf5/opened_dataset.hpp"
#include "hdf5/source_file.hpp"

#include <zarrbits/convert.hpp>

#include <cstddef>
#include <optional>

namespace zarrbits::conversion {

// Empty if the dataset neither has nor gets the dimension. Throws zarrbits::error.
std::optional<std::size_t> axis_of(const concatenation& concat, const hdf5::source_file& file, const hdf5::source_object& o,
                                   const hdf5::opened_dataset& data);

}  // namespace zarrbits::conversion

#endif
