// SPDX-License-Identifier: BSL-1.0
//
// Reasons that cost one dataset, while the conversion continues with the rest of the file.
//
#ifndef ZARRBITS_HDF5_UNSUPPORTED_DATASET_HPP
#define ZARRBITS_HDF5_UNSUPPORTED_DATASET_HPP

#include "text/coded_reason.hpp"

#include <functional>
#include <optional>
#include <string>

namespace zarrbits::hdf5 {

// Why one dataset is skipped; the conversion continues with the rest of the file. what() is the reason.
struct unsupported_dataset : text::coded_error {
  using coded_error::coded_error;
};

// For the filters that pipeline::unavailable_filters() names.
unsupported_dataset missing_filter(const std::string& names);

// Calls `f`. Returns the reason, which has a code, if `f` fails in a way that costs the dataset, but not the conversion; rethrows
// any other exception.
std::optional<text::coded_reason> skip_reason(const std::function<void()>& f);

}  // namespace zarrbits::hdf5

#endif
