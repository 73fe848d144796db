// SPDX-License-Identifier: BSL-1.0
#ifndef ZARRBITS_CONVERT_PIPELINE_COUNTING_WRITER_HPP
#define ZARRBITS_CONVERT_PIPELINE_COUNTING_WRITER_HPP

#include "zarr/write/store_writer.hpp"

#include <memory>

namespace zarrbits::conversion {

// Counts the bytes that are written, and keeps none of them.
std::unique_ptr<zarr::store_writer> make_counting_writer();

}  // namespace zarrbits::conversion

#endif
