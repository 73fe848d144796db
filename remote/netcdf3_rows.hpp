// SPDX-License-Identifier: BSL-1.0
//
// Reads the chunks of netCDF-3 files whose rows are apart in the file, on this machine or on a server.
//
#ifndef ZARRBITS_REMOTE_NETCDF3_ROWS_HPP
#define ZARRBITS_REMOTE_NETCDF3_ROWS_HPP

#include "io/byte_source.hpp"
#include "io/netcdf3_chunks.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace zarrbits::remote {

// Whether the rows of a chunk on a server are downloaded alone: the values between them are many, and do not fit in the `cache`
// bytes of the file that are kept. Otherwise they are read through the cache, with those between them.
bool are_read_alone(const io::byte_source& file, const io::netcdf3_rows& rows, std::uint64_t cache);

// Bytes of a chunk from `offset` on, of rows that are apart in the file, or that reach over the edge of the array: what the file
// does not have reads as zeros. Throws what reading the file throws.
void read_rows(const io::byte_source& file, const io::netcdf3_rows& rows, std::uint64_t cache, std::uint64_t offset,
               std::span<std::byte> out);

}  // namespace zarrbits::remote

#endif
