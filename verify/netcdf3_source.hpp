// SPDX-License-Identifier: BSL-1.0
//
// A netCDF-3 file as `verify` reads it: as a Zarr store, so that compare_stores() compares it, but with a parser and a division
// into chunks that nothing else uses. It is written as the specification of the format is, and not for speed.
//
#ifndef ZARRBITS_VERIFY_NETCDF3_SOURCE_HPP
#define ZARRBITS_VERIFY_NETCDF3_SOURCE_HPP

#include "io/byte_source.hpp"
#include "zarr/read/store_reader.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace zarrbits::verification {

// `memory`: bytes that the header may take, and that are kept of a file on a server. Throws store_error.
zarr::store_folder read_netcdf3_source(const std::string& name, std::shared_ptr<const io::byte_source> file,
                                       std::uint64_t memory);

}  // namespace zarrbits::verification

#endif
