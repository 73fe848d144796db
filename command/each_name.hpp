// SPDX-License-Identifier: BSL-1.0
//
// A command on several names, one after another, each in a process of its own.
//
//   return run_for_each(names, as_json, [&](const std::string& name, const std::string& separator) {
//     return run_in_subprocess(name, [&](const auto& set_current) { ... std::cout << separator << report; ... });
//   });
//
#ifndef ZARRBITS_COMMAND_EACH_NAME_HPP
#define ZARRBITS_COMMAND_EACH_NAME_HPP

#include <functional>
#include <string>
#include <vector>

namespace zarrbits::command {

// Returns the exit status of all: failure if one failed, else that of the last one that is not success. An error of one name is
// printed, and does not stop the others; that of the only one is thrown. `as_json`: the reports of several names are a list, and
// `run` prints `separator` before its own.
int run_for_each(const std::vector<std::string>& names, bool as_json,
                 const std::function<int(const std::string& name, const std::string& separator)>& run);

}  // namespace zarrbits::command

#endif
