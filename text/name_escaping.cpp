// SPDX-License-Identifier: BSL-1.0
#include "text/name_escaping.hpp"

#include "text/format.hpp"
#include "text/percent.hpp"

namespace zarrbits::text {

namespace {

int digit_of(char c) noexcept { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

// The byte of the escape_name() escape at the front of `s`, or -1 without one.
int shown_byte(std::string_view s) noexcept {
  if (s.size() < 3 || s[0] != '%' || digit_of(s[1]) < 0 || digit_of(s[2]) < 0) return -1;
  const int byte = digit_of(s[1]) * 16 + digit_of(s[2]);
  return byte == '%' || byte >= 0x80 ? byte : -1;
}

std::string with_escapes(std::string_view s, bool reversible) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    const std::size_t n = utf8_length(s);
    if (n == 0 || (reversible && shown_byte(s) >= 0)) {
      append_percent_escape(out, s[0]);
      s.remove_prefix(1);
    } else {
      out += s.substr(0, n);
      s.remove_prefix(n);
    }
  }
  return out;
}

}  // namespace

std::string escape_name(std::string_view name) { return with_escapes(name, true); }

std::string escape_invalid_utf8(std::string_view text) { return with_escapes(text, false); }

std::string unescape_name(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    const int byte = shown_byte(s);
    out += byte < 0 ? s[0] : static_cast<char>(byte);
    s.remove_prefix(byte < 0 ? 1 : 3);
  }
  return out;
}

}  // namespace zarrbits::text
