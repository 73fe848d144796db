// SPDX-License-Identifier: BSL-1.0
//
// The size in the store of what has no size in metadata: strings, references and sequences.
//
#ifndef ZARRBITS_CONVERT_RUN_CHUNK_MEASUREMENT_HPP
#define ZARRBITS_CONVERT_RUN_CHUNK_MEASUREMENT_HPP

#include "convert/plan/dataset_plan.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace zarrbits::conversion {

// Bytes of the chunks of a prepared dataset, which are made and go nowhere. Empty if all sizes follow from metadata, if there are
// too many values to read for a plan, and if the values cannot be read. The caller holds hdf5::lock, or is alone.
std::optional<std::uint64_t> measure_chunks(const std::shared_ptr<const dataset_plan>& dataset);

}  // namespace zarrbits::conversion

#endif
