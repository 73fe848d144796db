// SPDX-License-Identifier: BSL-1.0
//
// Appends new files to a store: a separate conversion makes their chunks next to it, and they are moved into the store when all
// are complete.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_APPEND_FILES_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_APPEND_FILES_HPP

#include <zarrbits/convert.hpp>

#include <string>

namespace zarrbits::conversion {

// `options` has `concat` with `append`; `started` is convert_result::started. Throws zarrbits::error; readers then see the store
// unchanged.
convert_result append_files(const convert_options& options, const std::string& started);
convert_plan plan_append(const convert_options& options, const plan_options& further);

}  // namespace zarrbits::conversion

#endif
