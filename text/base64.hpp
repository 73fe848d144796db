// SPDX-License-Identifier: BSL-1.0
//
// Bytes as text (RFC 4648).
//
#ifndef ZARRBITS_TEXT_BASE64_HPP
#define ZARRBITS_TEXT_BASE64_HPP

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::text {

std::string base64(std::span<const std::byte> bytes);
std::string base64(std::string_view bytes);
// Empty if the text is not base64.
std::optional<std::vector<std::byte>> decode_base64(std::string_view text);

}  // namespace zarrbits::text

#endif
