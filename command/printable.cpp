// SPDX-License-Identifier: BSL-1.0
#include "command/printable.hpp"

#include "text/format.hpp"

#include <cstdint>
#include <cstdio>

namespace zarrbits::command {

namespace {

// Whether a terminal, or a reader of lines, acts on it instead of showing it.
bool is_control(std::uint32_t c) noexcept {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) ||       // C0, DEL, C1
         c == 0x061C || c == 0x200E || c == 0x200F ||  // marks of direction
         (c >= 0x2028 && c <= 0x202E) ||               // line and paragraph separator, embedding and overriding a direction
         (c >= 0x2066 && c <= 0x2069) ||               // isolating one
         c == 0xFEFF;                                  // a space of no width
}

struct character {
  std::string_view bytes;
  std::uint32_t code;
  bool is_printable;  // or to be escaped
};

// Takes the next character off the text, or a byte that is not part of one.
character take_character(std::string_view& text) noexcept {
  const std::size_t n = text::utf8_length(text);
  character p{text.substr(0, n == 0 ? 1 : n), 0, n != 0};
  if (n != 0) {
    p.code = static_cast<unsigned char>(text[0]) & (n == 1 ? 0x7FU : 0xFFU >> (n + 1));
    for (std::size_t i = 1; i < n; ++i) p.code = p.code << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
    p.is_printable = !is_control(p.code);
  }
  text.remove_prefix(p.bytes.size());
  return p;
}

void append_escaped(std::string& out, std::string_view bytes) {
  static const char digits[] = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
  }
}

// Two digits after \x and no more are a character to bash and zsh, whatever follows.
std::string ansi_quoted(std::string_view text) {
  std::string q = "$'";
  while (!text.empty()) {
    const character p = take_character(text);
    if (p.is_printable) {
      if (p.bytes == "'" || p.bytes == "\\") q += '\\';
      q += p.bytes;
      continue;
    }
    append_escaped(q, p.bytes);
  }
  return q + "'";
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const character p = take_character(text);
    if (p.is_printable) out += p.bytes;
    else append_escaped(out, p.bytes);
  }
  return out;
}

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const character p = take_character(json);
    if (p.is_printable || p.bytes == "\n") {  // between values; in a text it is \n already
      out += p.bytes;
      continue;
    }
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", p.code);  // JSON is UTF-8, and all that act have four digits
    out += escape;
  }
  return out;
}

std::string shell_quoted(std::string_view text) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=.,/:@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string_view::npos) return std::string(text);
  if (printable(text) != text) return ansi_quoted(text);
  std::string q = "'";
  for (const char c : text) q += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return q + "'";
}

std::string shell_line(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& a : arguments) line += (line.empty() ? "" : " ") + shell_quoted(a);
  return line;
}

std::string shell_file(const std::string& path) { return shell_quoted(path[0] == '-' ? "./" + path : path); }

std::string quote(std::string_view name) {
  if (name.find_first_of("\"\\$`!") != std::string_view::npos || printable(name) != name) return ansi_quoted(name);
  return '"' + std::string(name) + '"';
}

}  // namespace zarrbits::command
