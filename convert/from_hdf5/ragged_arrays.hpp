// SPDX-License-Identifier: BSL-1.0
//
// Variable-length sequences of a dataset, as an array of their elements and an array of their starts.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_RAGGED_ARRAYS_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_RAGGED_ARRAYS_HPP

#include "convert/pipeline/work_unit_result.hpp"
#include "convert/plan/array_plan.hpp"
#include "hdf5/chunk_source.hpp"
#include "metadata/array_metadata.hpp"
#include "zarr/write/store_writer.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zarrbits::conversion {

struct append_context {
  const hdf5::chunk_source& data;
  zarr::store_writer& out;
  array_result& result;
  std::vector<derived_array>& derived_arrays;
  bool checksum = false;     // chunks end with their crc32c
  std::uint64_t memory = 0;  // bytes
  // Called before the first chunk of an array, if set; the length of the array is 0 in its metadata, that of chunks is right
  // unless it has one alone.
  std::function<void(const std::string& store_path, const metadata::array_metadata&)> array_begins = {};
};

// Appends values to 1-dimensional arrays; for the content of variable-length sequences.
class value_appender {
 public:
  virtual ~value_appender() = default;
  virtual void append(const std::byte* values, std::size_t count) = 0;
  virtual void finish() = 0;  // completes the arrays
  // Throws unsupported_dataset if Zarr cannot hold values of this type.
  static std::unique_ptr<value_appender> make(const append_context& context, const hdf5::type_description& type,
                                              const std::string& store_path);
};

// Writes the chunks. Leaves the metadata in `context.derived_arrays`, with the sequences' own group last. The caller holds
// hdf5::lock.
void write_ragged_arrays(const hdf5::chunk_source& data, const field_view& view, const std::string& store_path,
                         const append_context& context);

}  // namespace zarrbits::conversion

#endif
