// SPDX-License-Identifier: BSL-1.0
#include "text/format.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace zarrbits::text {

namespace {

// Bytes at the front of `s` that begin a character which is not completed; 1 if the first byte begins none.
std::size_t truncated_utf8_length(std::string_view s) noexcept {
  for (std::size_t n = std::min<std::size_t>(3, s.size()); n > 1; --n) {
    char padded[5] = {'\x80', '\x80', '\x80', '\x80', '\x80'};
    s.copy(padded, n);
    if (utf8_length({padded, sizeof padded}) > n) return n;
  }
  return 1;
}

}  // namespace

std::size_t utf8_length(std::string_view s) noexcept {
  if (s.empty()) return 0;
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return i < s.size() && byte_at(i) >= low && byte_at(i) <= high;
  };
  const unsigned c = byte_at(0);
  if (c < 0x80) return 1;
  if (c >= 0xC2 && c <= 0xDF) return follows(1) ? 2 : 0;
  if (c >= 0xE0 && c <= 0xEF) {  // no overlong forms, no surrogates
    return follows(1, c == 0xE0 ? 0xA0 : 0x80, c == 0xED ? 0x9F : 0xBF) && follows(2) ? 3 : 0;
  }
  if (c >= 0xF0 && c <= 0xF4)
    return follows(1, c == 0xF0 ? 0x90 : 0x80, c == 0xF4 ? 0x8F : 0xBF) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}

bool is_utf8(std::string_view s) noexcept {
  while (!s.empty()) {
    if (static_cast<unsigned char>(s[0]) < 0x80) {
      s.remove_prefix(1);
      continue;
    }
    const std::size_t n = utf8_length(s);
    if (n == 0) return false;
    s.remove_prefix(n);
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view s) {
  std::string out;
  while (!s.empty()) {
    std::size_t n = utf8_length(s);
    if (n > 0) {
      out += s.substr(0, n);
    } else {
      out += "\xEF\xBF\xBD";
      n = truncated_utf8_length(s);
    }
    s.remove_prefix(n);
  }
  return out;
}

std::string pluralize(std::uint64_t n, std::string_view noun) {
  return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

std::string format_bytes(std::uint64_t bytes) {
  const char* unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto v = static_cast<double>(bytes);
  std::size_t i = 0;
  while (v >= 1024 && i < 5) {
    v /= 1024;
    ++i;
  }
  char text[32];
  std::snprintf(text, sizeof text, i == 0 ? "%.0f %s" : "%.1f %s", v, unit[i]);
  return text;
}

namespace {

using json = nlohmann::ordered_json;
using function = std::function<std::string(const json&)>;

// A number in core/json.hpp that only its text has, or what `word_of` says.
std::string bare_word(const json& j, const function& word_of) {
  if (!j.is_binary()) return word_of(j);
  const auto& bytes = j.get_binary();
  return {bytes.begin(), bytes.end()};
}

bool has_words(const json& j, const function& word_of) {
  if (!j.is_structured()) return !bare_word(j, word_of).empty();
  return std::any_of(j.begin(), j.end(), [&](const json& element) { return has_words(element, word_of); });
}

// Puts texts for them: a mark, and their word.
void mark_words(json& j, const std::string& mark, const function& word_of) {
  if (j.is_structured()) {
    for (json& element : j) mark_words(element, mark, word_of);
  } else if (const std::string word = bare_word(j, word_of); !word.empty()) {
    j = mark + word + mark;
  }
}

}  // namespace

std::string json_text_with_words(const json& j, const function& word_of, const function& text_of) {
  if (!has_words(j, word_of)) return text_of(j);
  json marked = j;
  mark_words(marked, "", word_of);
  std::string mark = "<word>";  // one that the text does not have
  for (const std::string plain = text_of(marked); plain.find(mark) != std::string::npos;) mark += '>';
  marked = j;
  mark_words(marked, mark, word_of);
  std::string text = text_of(marked);
  for (const std::string& quoted : {"\"" + mark, mark + "\""}) {
    for (std::size_t position = 0; (position = text.find(quoted, position)) != std::string::npos;)
      text.erase(position, quoted.size());
  }
  return text;
}

std::string json_text(const json& j, int indent) {
  return json_text_with_words(
      j, [](const json&) { return std::string(); },
      [&](const json& value) { return value.dump(indent, ' ', false, json::error_handler_t::replace); });
}

}  // namespace zarrbits::text
