// SPDX-License-Identifier: BSL-1.0
//
// What decides the order in which files are joined by value.
//
#ifndef ZARRBITS_CONVERT_CONCAT_FILE_ORDER_HPP
#define ZARRBITS_CONVERT_CONCAT_FILE_ORDER_HPP

#include "hdf5/source_file.hpp"

#include <zarrbits/convert.hpp>

#include <string>

namespace zarrbits::conversion {

// The meaning of the first value of the dimension's variable that is not missing. Opens the file. Throws zarrbits::error.
long double first_value_of_file(const std::string& source, const std::string& dimension,
                                const hdf5::source_options& open_options);

}  // namespace zarrbits::conversion

#endif
