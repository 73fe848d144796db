// SPDX-License-Identifier: BSL-1.0
//
// The program that a profile names to get credentials from: "credential_process = aws configure export-credentials ...".
//
#ifndef ZARRBITS_REMOTE_S3_CREDENTIAL_PROCESS_HPP
#define ZARRBITS_REMOTE_S3_CREDENTIAL_PROCESS_HPP

#include "remote/sigv4.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::remote {

// The words of a command line, as a POSIX shell would split it, without expansions. Empty if a quote is not closed.
std::optional<std::vector<std::string>> split_words(std::string_view command);

// What the program printed on standard output, as JSON of version 1; its standard error is ours. It runs without a shell, and for
// no longer than a request may go without progress. Throws zarrbits::error, without the command, which may have secrets: if it
// cannot be started, fails, does not end, or prints anything else.
s3_credentials credentials_of_process(const std::string& command, const std::string& profile);

}  // namespace zarrbits::remote

#endif
