// SPDX-License-Identifier: BSL-1.0
//
// The values of an array: its chunks, made by several threads and written by one at a time, or its values through libhdf5.
//
#ifndef ZARRBITS_EXPORT_WRITE_CHUNKS_HPP
#define ZARRBITS_EXPORT_WRITE_CHUNKS_HPP

#include "export/chunk_plan.hpp"
#include "export/dataset_spec.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <zarrbits/export.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::exporting {

struct written_chunks {
  std::uint64_t count = 0, store_bytes = 0, file_bytes = 0;
  bool any_recoded = false;
  // With `keep_going`: chunks that cannot be read, and why.
  std::vector<std::pair<std::vector<std::uint64_t>, std::string>> lost_chunks;
};

// `progress` is called repeatedly, with the chunks that are done and all of them. The file is the same for any number of threads.
// Throws zarr::store_error, zarr::not_supported, compressors::corrupt_chunk, unsupported_in_hdf5, hdf5::failure.
using chunk_progress = std::function<void(std::uint64_t completed, std::uint64_t total)>;

written_chunks write_chunks(hid_t dataset, const conversion::source_array& array, const dataset_spec& form, chunk_plan recipe,
                            const export_options& options, const chunk_progress& progress);
written_chunks write_values(hid_t dataset, const conversion::source_array& array, const dataset_spec& form,
                            const export_options& options, reference_maker& references, const chunk_progress& progress);

}  // namespace zarrbits::exporting

#endif
