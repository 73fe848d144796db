// SPDX-License-Identifier: BSL-1.0
//
// Escapes of single bytes: "%2F".
//
#ifndef ZARRBITS_TEXT_PERCENT_HPP
#define ZARRBITS_TEXT_PERCENT_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace zarrbits::text {

inline void append_percent_escape(std::string& out, char c) {
  constexpr char digits[] = "0123456789ABCDEF";
  const auto b = static_cast<unsigned char>(c);
  out += '%';
  out += digits[b >> 4];
  out += digits[b & 15];
}

// The byte that an escape stands for, such as "%2F" at `offset`; negative without one.
inline int percent_escape_at(std::string_view text, std::size_t offset) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (offset + 2 >= text.size() || text[offset] != '%') return -1;
  const int high = digit(text[offset + 1]), low = digit(text[offset + 2]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

// The bytes that escapes stand for. Empty if one is not complete, or stands for "/" or NUL.
inline std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int value = percent_escape_at(text, i);
    if (value <= 0 || value == '/') return {};
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

// A path in a URL of HTTP. Names in S3 are as they are.
inline std::string escape_url_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/!$&'()*+,;=:@").find(c) != std::string_view::npos;
    if (plain) out += c;
    else append_percent_escape(out, c);
  }
  return out;
}

}  // namespace zarrbits::text

#endif
