// SPDX-License-Identifier: BSL-1.0
//
// Which objects of a file are wanted.
//
//   selection s({"/run*/**", "temperature"}, {"/run1/raw"});
//   s.matches("/run2/a");          // true: it matches, or a group above it does, and nothing of that is excluded
//   s.require_all_matched();       // throws if a pattern has matched no path that matches() or excludes() was asked about
//
// Patterns: `*` any characters but "/", `?` one of them, `[a-z]`, `[!a-z]`, `**` any characters, `**/` any number of groups,
// including none;
// `\` takes the next character as it is. A pattern that does not begin with "/" may begin in any group.
//
#ifndef ZARRBITS_TEXT_SELECTION_HPP
#define ZARRBITS_TEXT_SELECTION_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::text {

class path_pattern {
 public:
  // Throws zarrbits::error if the text is not a pattern.
  explicit path_pattern(std::string text);

  // Time is at most proportional to the product of both lengths, for any pattern.
  bool matches(std::string_view path) const;
  const std::string& text() const noexcept { return text_; }

 private:
  struct token {
    enum { literal, one, star, across, groups, set } kind = literal;
    char32_t character = 0;
    bool negated = false;
    std::vector<std::pair<char32_t, char32_t>> ranges;
  };
  std::string text_;
  std::vector<token> tokens_;
};

// A pattern that matches this path alone, and all below it.
std::string pattern_of_path(std::string_view path);

class selection {
 public:
  selection() = default;
  selection(const std::vector<std::string>& include, const std::vector<std::string>& exclude);

  void include(std::string pattern) { include_.push_back({path_pattern(std::move(pattern))}); }
  std::vector<std::string> included() const { return texts(include_); }
  std::vector<std::string> excluded() const { return texts(exclude_); }
  bool matches_all() const noexcept { return include_.empty() && exclude_.empty(); }
  // "/a/b" is wanted if it or a group above it is included (or no include patterns are given), and none of them is excluded.
  bool matches(std::string_view path);
  bool excludes(std::string_view path);

  // Throws zarrbits::error that names a pattern without any match.
  void require_all_matched() const;

 private:
  struct entry {
    path_pattern pattern;
    bool matched = false;
  };
  static std::vector<std::string> texts(const std::vector<entry>& patterns);
  static bool any_matches(std::vector<entry>& patterns, std::string_view path);

  std::vector<entry> include_, exclude_;
};

}  // namespace zarrbits::text

#endif
