// SPDX-License-Identifier: BSL-1.0
#include "text/selection.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>

namespace zarrbits::text {

namespace {

// The next UTF-8 character; an invalid byte stands for itself, above all characters.
char32_t next_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 1;
  char32_t c = size == 1 ? first : first & (0xFFU >> (size + 1));
  bool good = size <= text.size() && first < 0xF5 && (size > 1 || first < 0x80);
  for (std::size_t i = 1; good && i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    good = (byte & 0xC0) == 0x80;
    c = c << 6 | (byte & 0x3FU);
  }
  text.remove_prefix(good ? size : 1);
  return good ? c : 0x110000U + first;
}

[[noreturn]] void throw_invalid_pattern(const std::string& text, const char* reason) {
  throw zarrbits::error(errc::invalid_option, "\"" + text + "\" is not a valid path pattern: " + reason);
}

}  // namespace

path_pattern::path_pattern(std::string text) : text_(std::move(text)) {
  std::string_view remaining = text_;
  if (remaining.size() > 1 && remaining.ends_with('/')) remaining.remove_suffix(1);
  if (remaining.empty()) throw_invalid_pattern(text_, "it is empty; use a path, such as /group/dataset or *.raw");
  if (remaining[0] != '/') {
    tokens_.push_back({token::literal, U'/', false, {}});
    if (!remaining.starts_with("**")) tokens_.push_back({token::groups, 0, false, {}});
  }
  while (!remaining.empty()) {
    token t;
    if (remaining.starts_with("**")) {
      while (remaining.starts_with('*')) remaining.remove_prefix(1);
      const bool begins =
          tokens_.back().kind == token::groups || (tokens_.back().kind == token::literal && tokens_.back().character == U'/');
      t.kind = begins && remaining.starts_with('/') ? token::groups : token::across;
      if (t.kind == token::groups) remaining.remove_prefix(1);
    } else if (remaining[0] == '*' || remaining[0] == '?') {
      t.kind = remaining[0] == '*' ? token::star : token::one;
      remaining.remove_prefix(1);
    } else if (remaining[0] == '[') {
      t.kind = token::set;
      remaining.remove_prefix(1);
      if (remaining.starts_with('!') || remaining.starts_with('^')) {
        t.negated = true;
        remaining.remove_prefix(1);
      }
      do {  // a leading "]" is one of the characters
        if (remaining.empty()) throw_invalid_pattern(text_, "a \"[\" has no \"]\"; write \\[ for the character itself");
        const char32_t low = next_character(remaining);
        char32_t high = low;
        if (remaining.size() > 1 && remaining[0] == '-' && remaining[1] != ']') {
          remaining.remove_prefix(1);
          high = next_character(remaining);
        }
        t.ranges.emplace_back(low, high);
      } while (!remaining.starts_with(']'));
      remaining.remove_prefix(1);
    } else {
      if (remaining[0] == '\\' && remaining.size() > 1) remaining.remove_prefix(1);
      t.character = next_character(remaining);
    }
    tokens_.push_back(std::move(t));
  }
}

bool path_pattern::matches(std::string_view path) const {
  // all places in the pattern that the path may have reached
  std::vector<char> active(tokens_.size() + 1, 0), next(active);
  const auto enter = [&](std::vector<char>& places, std::size_t i) {
    while (!places[i]) {
      places[i] = 1;
      if (i == tokens_.size()) return;
      const auto kind = tokens_[i].kind;
      if (kind != token::star && kind != token::across && kind != token::groups) return;
      ++i;  // these also match nothing
    }
  };
  enter(active, 0);
  while (!path.empty()) {
    const char32_t c = next_character(path);
    std::fill(next.begin(), next.end(), 0);
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (!active[i]) continue;
      const token& t = tokens_[i];
      switch (t.kind) {
        case token::literal:
          if (c == t.character) enter(next, i + 1);
          break;
        case token::one:
          if (c != U'/') enter(next, i + 1);
          break;
        case token::star:
          if (c != U'/') enter(next, i);
          break;
        case token::across: enter(next, i); break;
        case token::groups:
          if (c == U'/') enter(next, i);  // a whole group has matched: the next part may begin
          else next[i] = 1;
          break;
        case token::set: {
          const bool in =
              std::any_of(t.ranges.begin(), t.ranges.end(), [&](const auto& r) { return c >= r.first && c <= r.second; });
          if (c != U'/' && in != t.negated) enter(next, i + 1);
          break;
        }
      }
    }
    active.swap(next);
  }
  return active[tokens_.size()] != 0;
}

std::string pattern_of_path(std::string_view path) {
  std::string pattern;
  for (const char c : path) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

selection::selection(const std::vector<std::string>& include, const std::vector<std::string>& exclude) {
  for (const std::string& text : include) include_.push_back({path_pattern(text)});
  for (const std::string& text : exclude) exclude_.push_back({path_pattern(text)});
}

std::vector<std::string> selection::texts(const std::vector<entry>& patterns) {
  std::vector<std::string> result;
  for (const entry& e : patterns) result.push_back(e.pattern.text());
  return result;
}

bool selection::any_matches(std::vector<entry>& patterns, std::string_view path) {
  bool has_match = false;
  for (std::size_t end = path == "/" ? std::string_view::npos : 0;;) {  // "/", then each group above it, then the path itself
    const std::string_view part = end == std::string_view::npos ? path : end == 0 ? std::string_view("/") : path.substr(0, end);
    for (entry& e : patterns) {
      // no early exit: each pattern must know whether it ever matched
      if (e.pattern.matches(part)) has_match = e.matched = true;
    }
    if (end == std::string_view::npos) return has_match;
    end = path.find('/', end + 1);
  }
}

bool selection::matches(std::string_view path) {
  const bool included = include_.empty() || any_matches(include_, path);
  return !excludes(path) && included;
}

bool selection::excludes(std::string_view path) { return any_matches(exclude_, path); }

void selection::require_all_matched() const {
  for (const auto* list : {&include_, &exclude_}) {
    for (const entry& e : *list) {
      if (e.matched) continue;
      throw zarrbits::error(errc::no_match,
                            std::string(list == &include_ ? "`include`" : "`exclude`") + " \"" + e.pattern.text() +
                                "\" matches no path of the file; \"zarrbits inspect\" lists them, and ** matches across groups");
    }
  }
}

}  // namespace zarrbits::text
