// SPDX-License-Identifier: BSL-1.0
//
// The text of references in JSON, value by value: a tree of a million references would take a gigabyte.
//
#ifndef ZARRBITS_IO_REFERENCE_JSON_HPP
#define ZARRBITS_IO_REFERENCE_JSON_HPP

#include <nlohmann/json.hpp>

#include <string>

namespace zarrbits::io {

// Passes what the file has to `handler`. Throws reference_error if it is not a regular file, not JSON, or if the handler returns
// false.
void parse_references(const std::string& path, nlohmann::json_sax<nlohmann::json>& handler);

}  // namespace zarrbits::io

#endif
