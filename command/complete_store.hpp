// SPDX-License-Identifier: BSL-1.0
//
// A script that runs again finds the store that it made: then `--resume` has nothing to do, and says so.
//
#ifndef ZARRBITS_COMMAND_COMPLETE_STORE_HPP
#define ZARRBITS_COMMAND_COMPLETE_STORE_HPP

#include <zarrbits/convert.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace zarrbits::command {

// Returns a value if the store is complete and equal to the source: every element is compared, as `zarrbits verify` does. The
// value is the number of objects that could not be compared, such as datasets whose filter libhdf5 does not find. Throws
// zarrbits::error if the store is complete and holds something else.
std::optional<std::size_t> compare_complete_store(const convert_options& options,
                                                  const std::function<void(const std::string& path)>& set_current = {});

}  // namespace zarrbits::command

#endif
