// SPDX-License-Identifier: BSL-1.0
//
// A conversion whose source is a Zarr store: v2 or v3, a directory, a .zip file, references, or in S3. The counterpart of
// run/hdf5_conversion.hpp, with the same plans and journals.
//
#ifndef ZARRBITS_CONVERT_FROM_ZARR_ZARR_CONVERSION_HPP
#define ZARRBITS_CONVERT_FROM_ZARR_ZARR_CONVERSION_HPP

#include <zarrbits/convert.hpp>

#include <memory>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// As the public functions of these names. `started`: convert_result::started. Throw zarrbits::error.
convert_result convert_store(const convert_options& options, const std::string& started);
convert_result finalize_store(const convert_options& options, const std::string& started);
convert_plan plan_store(const convert_options& options);

// What convert_worker does with such a source.
class zarr_worker {
 public:
  virtual ~zarr_worker() = default;
  virtual std::vector<convert_worker::unit> missing() = 0;
  virtual void make(const convert_worker::unit& u) = 0;
};
// Joins the store. Throws zarrbits::error.
std::unique_ptr<zarr_worker> join_conversion(const convert_options& options);

// Throws zarrbits::error for options that have no meaning for a Zarr store.
void check_store_options(const convert_options& options);

}  // namespace zarrbits::conversion

#endif
