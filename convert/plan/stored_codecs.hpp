// SPDX-License-Identifier: BSL-1.0
//
// The codecs of an array that is in a store already, which anybody may have written.
//
#ifndef ZARRBITS_CONVERT_PLAN_STORED_CODECS_HPP
#define ZARRBITS_CONVERT_PLAN_STORED_CODECS_HPP

#include "convert/plan/compression.hpp"
#include "convert/text/json_text.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace zarrbits::conversion {

// "" where it has none.
std::string name_of_codec(const json& codec);
bool ends_with_crc32c(const json& codecs);
// Some are numcodecs'.
bool has_native_codecs(const json& codecs);
// What was encoded by one list is decoded by the other: they differ in what an encoder alone looks at, such as levels.
bool decode_alike(const json& a, const json& b);
// What stands between the first codec and a checksum, with blosc's typesize; nothing where compress() does not know it.
std::optional<std::pair<compression, std::size_t>> compression_in(const json& codecs);

}  // namespace zarrbits::conversion

#endif
