// SPDX-License-Identifier: BSL-1.0
//
// How a conversion's store is written, whatever its source is.
//
#ifndef ZARRBITS_CONVERT_RUN_TARGET_OPTIONS_HPP
#define ZARRBITS_CONVERT_RUN_TARGET_OPTIONS_HPP

#include "zarr/write/store_writer.hpp"

#include <zarrbits/convert.hpp>

#include <string>

namespace zarrbits::conversion {

// Without what becomes of a target that exists. `source_file`: that of the source or, of several files, the first.
zarr::store_writer_options target_options(const convert_options& options, const std::string& source_file);

}  // namespace zarrbits::conversion

#endif
