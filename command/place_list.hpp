// SPDX-License-Identifier: BSL-1.0
//
// A table of where files belong that are combined: --places tiles.csv.
//
//   file,time,x
//   a.nc,0,0
//   b.nc,0,1
//
#ifndef ZARRBITS_COMMAND_PLACE_LIST_HPP
#define ZARRBITS_COMMAND_PLACE_LIST_HPP

#include <cstdint>
#include <string>
#include <vector>

namespace zarrbits::command {

// For each source its place along each dimension. Names in the table are relative to its folder. Throws usage_error, which names
// the line.
std::vector<std::vector<std::uint64_t>> read_place_list(const std::string& file, const std::vector<std::string>& sources,
                                                        const std::vector<std::string>& dimensions);

}  // namespace zarrbits::command

#endif
