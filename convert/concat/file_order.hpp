// SPDX-License-Identifier: BSL-1.0
//
// The order in which files are joined.
//
#ifndef ZARRBITS_CONVERT_CONCAT_FILE_ORDER_HPP
#define ZARRBITS_CONVERT_CONCAT_FILE_ORDER_HPP

#include "hdf5/source_file.hpp"

#include <zarrbits/convert.hpp>

#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// All names of sources, as they were given.
std::vector<std::string> given_sources(const std::string& first, const std::optional<concatenation>& concat);

// The names of all files in `options`, which have `concat`, in the order in which they are joined. The order by value opens each
// file. Throws zarrbits::error.
std::vector<std::string> ordered_sources(const convert_options& options, const hdf5::source_options& open_options);

}  // namespace zarrbits::conversion

#endif
