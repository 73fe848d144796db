// SPDX-License-Identifier: BSL-1.0
//
// Stores at "https://host/prefix".
//
#ifndef ZARRBITS_ZARR_READ_WEB_READER_HPP
#define ZARRBITS_ZARR_READ_WEB_READER_HPP

#include "zarr/read/store_reader.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace zarrbits::zarr {

// With consolidated metadata; `memory`: for these, and for a list of chunks. Throws store_error.
std::shared_ptr<const store_reader> open_web(const std::string& name, const remote_access& remote, std::uint64_t memory);

}  // namespace zarrbits::zarr

#endif
