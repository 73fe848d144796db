// SPDX-License-Identifier: BSL-1.0
//
// Whether two files have the same values in a dataset.
//
//   if (!have_equal_values(first, second, "/mask")) ...
//
#ifndef ZARRBITS_REPACK_EQUAL_VALUES_HPP
#define ZARRBITS_REPACK_EQUAL_VALUES_HPP

#include "repack/opened_file.hpp"

#include <string>

namespace zarrbits::repacking {

// Both have the dataset, with one type and extent. References are not compared: they lead to objects of their own files. Throws
// zarrbits::error, hdf5::failure, io::read_error.
bool have_equal_values(const opened_file& a, const opened_file& b, const std::string& path);

}  // namespace zarrbits::repacking

#endif
