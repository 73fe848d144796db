// SPDX-License-Identifier: BSL-1.0
//
// The command line of `zarrbits convert`, as convert, plan, finalize and zarrbits-mpi read it.
//
#ifndef ZARRBITS_COMMAND_CONVERT_ARGUMENTS_HPP
#define ZARRBITS_COMMAND_CONVERT_ARGUMENTS_HPP

#include <zarrbits/combine.hpp>
#include <zarrbits/convert.hpp>

#include <functional>
#include <optional>
#include <string>

namespace zarrbits::command {

struct convert_arguments {
  convert_options options;
  std::optional<combine_options> combination;  // of files with parts of several dimensions
  std::string report;                          // file for it; "": none
  std::string partition_origin;                // what made this process a share: an option, a launcher
  bool quiet = false, print_json = false;
  bool measures_time = false;   // of plan
  bool bits_auto = false;       // the bits of each dataset are to be found
  bool has_digest = false;      // the digests of source and store are compared
  bool is_joined_file = false;  // the store is an HDF5 file that joins several, with virtual datasets or copies
  bool allow_lossy = false;     // exit status 0 where something was skipped or lossy
};

enum class convert_kind { convert, finalize, mpi, plan };

// A value means that the command is over with this exit status. `options` refer to `arguments`. Throws usage_error and
// zarrbits::error.
std::optional<int> parse_convert_arguments(convert_arguments& arguments, convert_kind kind, int argc, char** argv);

// 0 nothing lost (or that was allowed), 3 something skipped or lossy.
int exit_status_of(const convert_arguments& arguments, const convert_result& result);

// True if the store is complete and was made from this source, so that nothing is left to do; says so.
bool is_up_to_date(const convert_arguments& arguments, const std::function<void(const std::string& path)>& set_current = {});

// Losses, report and table of a conversion that is finished. Returns its exit status.
int print_result(const convert_arguments& arguments, const convert_result& result,
                 const std::function<void(const std::string& path)>& set_current = {});

}  // namespace zarrbits::command

#endif
