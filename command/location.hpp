// SPDX-License-Identifier: BSL-1.0
//
// Names of places as people write them.
//
//   location_name("file:///data/in.nc");   // "/data/in.nc"
//   location_name("S3://bucket/in.nc");    // "s3://bucket/in.nc"
//
#ifndef ZARRBITS_COMMAND_LOCATION_HPP
#define ZARRBITS_COMMAND_LOCATION_HPP

#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::command {

// The schemes that the library reaches, by its own names for them; all else stays. It comes before secrets are taken out of a
// name, which only URLs of known schemes have.
std::string with_known_scheme(const std::string& name);

// The name of a file or a store as the library has it; a name without a scheme stays. Throws usage_error for a scheme that
// nothing here reaches, unless there is a file of that name.
std::string location_name(const std::string& argument);

// Whether the value of an option is requested elsewhere, or by other programs.
bool takes_other_url(std::string_view option);

// Arguments of a command, in which names of files and stores are location_name(). Throws usage_error.
std::vector<std::string> with_location_names(int argc, const char* const* argv);

}  // namespace zarrbits::command

#endif
