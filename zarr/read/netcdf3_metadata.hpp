// SPDX-License-Identifier: BSL-1.0
//
// The metadata that a netCDF-3 file has as a Zarr store: the same that `convert` writes for the netCDF-4 file with its content,
// except that values stay in big endian.
//
#ifndef ZARRBITS_ZARR_READ_NETCDF3_METADATA_HPP
#define ZARRBITS_ZARR_READ_NETCDF3_METADATA_HPP

#include "io/netcdf3_header.hpp"
#include "metadata/chunk_key_encoding.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace zarrbits::zarr {

// All chunks of an array are in one folder.
inline constexpr metadata::chunk_key_encoding netcdf3_keys{.v2 = false, .separator = '.'};

// The names of the nodes of the variables, in their order.
std::vector<std::string> netcdf3_node_names(const io::netcdf3_header& header);

// The text of the zarr.json of the root, and of a variable. `memory`: bytes that it may take. Throw store_error.
std::string netcdf3_group_text(const io::netcdf3_header& header, const std::vector<std::string>& node_names,
                               std::uint64_t memory);
std::string netcdf3_array_text(const io::netcdf3_header& header, const io::netcdf3_variable& variable,
                               const std::vector<std::uint64_t>& chunk_shape, std::uint64_t memory);

}  // namespace zarrbits::zarr

#endif
