// SPDX-License-Identifier: BSL-1.0
//
// How much smaller an array would be with a compression, judged by a part of its values: for `zarrbits plan`.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_COMPRESSION_ESTIMATE_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_COMPRESSION_ESTIMATE_HPP

#include "convert/plan/dataset_plan.hpp"

#include <zarrbits/convert.hpp>

#include <cstdint>
#include <optional>

namespace zarrbits::conversion {

// For a prepared dataset whose array would have `store_bytes` without compression. Nothing if it would have one, if it has not
// enough bytes for a difference to matter, if it is on a server, and if it would hardly become smaller. Reads at most 512 KiB.
// Call it under hdf5::lock or alone.
std::optional<planned_dataset::compression_choice> estimate_compression(const dataset_plan& dataset, std::uint64_t store_bytes);

}  // namespace zarrbits::conversion

#endif
