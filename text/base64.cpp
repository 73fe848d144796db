// SPDX-License-Identifier: BSL-1.0
#include "text/base64.hpp"

#include <algorithm>
#include <cstdint>

namespace zarrbits::text {

std::string base64(std::string_view bytes) { return base64(std::as_bytes(std::span(bytes.data(), bytes.size()))); }

std::string base64(std::span<const std::byte> bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t v = std::to_integer<std::uint32_t>(bytes[i]) << 16;
    if (n > 1) v |= std::to_integer<std::uint32_t>(bytes[i + 1]) << 8;
    if (n > 2) v |= std::to_integer<std::uint32_t>(bytes[i + 2]);
    out += digits[v >> 18];
    out += digits[(v >> 12) & 63];
    out += n > 1 ? digits[(v >> 6) & 63] : '=';
    out += n > 2 ? digits[v & 63] : '=';
  }
  return out;
}

std::optional<std::vector<std::byte>> decode_base64(std::string_view text) {
  std::vector<std::byte> out;
  std::uint32_t bits = 0;
  unsigned count = 0;
  if (text.size() % 4 != 0) return {};
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  for (const char c : text) {
    unsigned v = 0;
    if (c >= 'A' && c <= 'Z') v = static_cast<unsigned>(c - 'A');
    else if (c >= 'a' && c <= 'z') v = static_cast<unsigned>(c - 'a') + 26;
    else if (c >= '0' && c <= '9') v = static_cast<unsigned>(c - '0') + 52;
    else if (c == '+') v = 62;
    else if (c == '/') v = 63;
    else return {};
    bits = bits << 6 | v;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<std::byte>(bits >> count & 0xff));
    }
  }
  return out;
}

}  // namespace zarrbits::text
