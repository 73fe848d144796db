// SPDX-License-Identifier: BSL-1.0
//
// How a conversion's store is written, whatever its source is.
//
#ifndef ZARRBITS_CONVERT_PIPELINE_TARGET_OPTIONS_HPP
#define ZARRBITS_CONVERT_PIPELINE_TARGET_OPTIONS_HPP

#include "zarr/write/store_writer.hpp"

#include <zarrbits/convert.hpp>

#include <cstdint>
#include <optional>

namespace zarrbits::conversion {

// The largest object among the references; not set: the target is a copy.
std::optional<std::uint64_t> inline_limit(const convert_target& target);
// Without what becomes of a target that exists.
zarr::store_writer_options target_options(const convert_options& options);

}  // namespace zarrbits::conversion

#endif
