// SPDX-License-Identifier: BSL-1.0
//
// The options of commands that read and write on servers, and what they have of secrets.
//
#ifndef ZARRBITS_COMMAND_REMOTE_OPTIONS_HPP
#define ZARRBITS_COMMAND_REMOTE_OPTIONS_HPP

#include <zarrbits/remote_access.hpp>

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace zarrbits::command {

// Adds --endpoint, --no-sign-request, --header and their companions.
void add_remote_options(CLI::App& app, remote_access& remote, const std::string& group = "Options");
// Call it after the arguments are parsed: a header "@FILE" is a file with one header on each line. Throws usage_error.
void check_remote_options(remote_access& remote);

// The arguments with "(hidden)" for headers that are given on the command line.
std::vector<std::string> without_header_values(int argc, const char* const* argv);

// The arguments as the program is to see them: URLs without their secrets, which are remembered. In argv, which every process of
// the machine can see, secrets are overwritten; and if there is a server, the process leaves no core file. Takes variables from
// the pipe that ZARRBITS_SECRETS_FD names, if any, first: an argument "@ZARRBITS_ARGUMENT_0" is one of them.
std::vector<std::string> take_arguments(int argc, char** argv);

}  // namespace zarrbits::command

#endif
