// SPDX-License-Identifier: BSL-1.0
#include "command/each_name.hpp"

#include "command/command_line.hpp"

#include <exception>
#include <iostream>
#include <unistd.h>

namespace zarrbits::command {

int run_for_each(const std::vector<std::string>& names, bool as_json,
                 const std::function<int(const std::string& name, const std::string& separator)>& run) {
  int status = exit_success;
  const bool is_list = as_json && names.size() != 1;
  std::string separator;
  if (is_list) std::cout << "[\n" << std::flush;
  const pid_t self = ::getpid();
  for (const std::string& name : names) {
    int of_name = exit_failure;
    try {
      of_name = run(name, separator);
    } catch (const std::exception& e) {
      // the process of a name ends with its error, too
      if (::getpid() != self || names.size() == 1) throw;
      print_error(e.what());
    }
    if (::getpid() != self) return of_name;
    if (is_list && of_name != exit_failure) separator = ",\n";
    if (status != exit_failure && of_name != exit_success) status = of_name;
  }
  if (is_list) std::cout << "]\n" << std::flush;
  return status;
}

}  // namespace zarrbits::command
