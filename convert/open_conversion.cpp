// SPDX-License-Identifier: BSL-1.0
#include "convert/open_conversion.hpp"

#include "convert/from_hdf5/hdf5_source.hpp"
#include "convert/from_zarr/zarr_source.hpp"

namespace zarrbits::conversion {

std::unique_ptr<converter> open_conversion(const convert_options& options, converter::mode run_mode, const start_time& started) {
  if (!zarr::is_read_as_store(options.source.name, options.source.concat.has_value()))
    return std::make_unique<hdf5_conversion>(options, run_mode, nullptr, started);
  return std::make_unique<converter>(
      options, run_mode, [](converter& run, convert_options& all) { return std::make_unique<zarr_source>(run, all); }, started);
}

}  // namespace zarrbits::conversion
