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
#include <string>

namespace zarrbits::conversion {

// "/images:0": the paths that match a pattern, and the number of an axis, in place of the name of a dimension.
bool is_axis_pattern(const std::string& dimension);
// The axis, or nothing if the path does not match. `subject`: "dataset \"/a\"", for errors. Throws zarrbits::error.
std::optional<std::size_t> axis_by_pattern(const std::string& pattern, const std::string& path, std::size_t rank,
                                           const std::string& subject, const std::string& file);

// Empty if the dataset neither has nor gets the dimension. Throws zarrbits::error.
std::optional<std::size_t> axis_of(const concatenation& concat, const hdf5::source_file& file, const hdf5::source_object& o,
                                   const hdf5::opened_dataset& data);

}  // namespace zarrbits::conversion

#endif
