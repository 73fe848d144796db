// SPDX-License-Identifier: BSL-1.0
//
// What a conversion would write, and how long it would take, judged by chunks that are made and go nowhere: for `zarrbits plan`.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_CHUNK_MEASUREMENT_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_CHUNK_MEASUREMENT_HPP

#include "convert/pipeline/work_unit_result.hpp"
#include "convert/plan/dataset_plan.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace zarrbits::conversion {

struct chunk_measurement {
  std::uint64_t store_bytes = 0;  // of all chunks
  work_unit_result result;        // of the chunks that were made
};

// Makes all chunks of a prepared dataset whose sizes do not follow from metadata: strings, references and sequences. Empty if all
// sizes do, if there are too many values to read for a plan, and if the values cannot be read. The caller holds hdf5::lock, or is
// alone.
std::optional<chunk_measurement> measure_chunks(const std::shared_ptr<const dataset_plan>& dataset);

// Makes some chunks of a prepared dataset without shards, of about `sample_bytes`, and estimates the size of all. Empty if its
// values are on a server, are sequences, or cannot be read, if a chunk is too large to make for a plan, and if the sample has
// none of the stored values. The caller holds hdf5::lock, or is alone.
std::optional<chunk_measurement> sample_chunks(const std::shared_ptr<const dataset_plan>& dataset, std::uint64_t sample_bytes);

// Makes chunks of such a dataset in these threads for about `seconds`, and estimates the seconds for all of them. Empty in the
// same cases. The caller does not hold hdf5::lock.
std::optional<double> measure_seconds(const std::shared_ptr<const dataset_plan>& dataset, unsigned threads, double seconds);

}  // namespace zarrbits::conversion

#endif
