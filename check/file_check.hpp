// SPDX-License-Identifier: BSL-1.0
//
// All objects of an HDF5 file: links, attributes, values, and what netCDF's hidden attributes say of each other.
//
#ifndef ZARRBITS_CHECK_FILE_CHECK_HPP
#define ZARRBITS_CHECK_FILE_CHECK_HPP

#include "check/finding_list.hpp"

#include <zarrbits/check.hpp>
#include <zarrbits/source_name.hpp>

namespace zarrbits::checking {

// Returns the note of the digest at the root; "" if absent. Throws errors that are not findings: read_failure.hpp.
std::string check_file(const integrity_options& options, const source_name& name, finding_list& findings,
                       integrity_report& report);

}  // namespace zarrbits::checking

#endif
