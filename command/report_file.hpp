// SPDX-License-Identifier: BSL-1.0
//
// The file of --report, or that of another option, whose name is `kind`.
//
#ifndef ZARRBITS_COMMAND_REPORT_FILE_HPP
#define ZARRBITS_COMMAND_REPORT_FILE_HPP

#include <zarrbits/convert.hpp>

#include <string>

namespace zarrbits::command {

// The report replaces an existing file. It must never replace the source or the store, under whatever name. Throws
// zarrbits::error.
void require_distinct_path(const std::string& report, const std::string& source_name, const std::string& store,
                           const std::string& kind = "report");

// The report of a conversion to the file `target`; "": none. It has no page for people. Throws usage_error, zarrbits::error.
void require_json_report(const std::string& report, const std::string& source_name, const std::string& target);

// A report that cannot be written is found before the conversion, not after it. Throws zarrbits::error.
void try_report(const std::string& path, const std::string& kind = "report");

// A report of the library, with the exit status that the command makes of it.
std::string with_exit_status(std::string report, int status);

// `json`: the report. A file "x.html" gets it as a page for people. It appears complete or not at all. Throws zarrbits::error.
void write_report(const std::string& path, const std::string& json, const std::string& kind = "report");

}  // namespace zarrbits::command

#endif
