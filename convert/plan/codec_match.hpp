// SPDX-License-Identifier: BSL-1.0
//
// The codecs of an existing array in a store from any writer.
//
#ifndef ZARRBITS_CONVERT_PLAN_CODEC_MATCH_HPP
#define ZARRBITS_CONVERT_PLAN_CODEC_MATCH_HPP

#include "convert/plan/filter_compression.hpp"
#include "text/json_text.hpp"

#include <cstddef>
#include <optional>
#include <utility>

namespace zarrbits::conversion {

bool ends_with_crc32c(const text::json& codecs);
// True if some are numcodecs'.
bool has_native_codecs(const text::json& codecs);
// True if each list decodes what the other encoded: they differ only in settings for the encoder, such as levels.
bool decode_alike(const text::json& a, const text::json& b);
// The compression between the first codec and a checksum, with blosc's typesize; empty if compress() does not support it.
std::optional<std::pair<compression, std::size_t>> compression_in(const text::json& codecs);

}  // namespace zarrbits::conversion

#endif
