// SPDX-License-Identifier: BSL-1.0
//
// Extensions in a zarr.json (codecs, data types, grids): a name alone, or an object with "name" and "configuration".
//
//   extension_name(parse_json(R"("bytes")"));           // "bytes"
//
#ifndef ZARRBITS_TEXT_EXTENSION_HPP
#define ZARRBITS_TEXT_EXTENSION_HPP

#include "text/json_text.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace zarrbits::text {

// "" if absent.
std::string extension_name(const json& extension);
// An empty object if absent.
json extension_configuration(const json& extension);

}  // namespace zarrbits::text

#endif
