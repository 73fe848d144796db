// SPDX-License-Identifier: BSL-1.0
#include "text/selection.hpp"

#include <zarrbits/convert.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

using zarrbits::error;
using zarrbits::text::path_pattern;
using zarrbits::text::selection;

BOOST_AUTO_TEST_CASE(patterns_match_as_the_help_says) {
  const struct {
    const char *pattern, *path;
    bool matches;
  } cases[] = {
      {"/a", "/a", true},
      {"/a", "/a/b", false},
      {"/a/", "/a", true},
      {"/*", "/a", true},
      {"/*", "/a/b", false},
      {"/a*", "/abc", true},
      {"/a*c", "/abc", true},
      {"/a*c", "/ab/c", false},
      {"/?", "/a", true},
      {"/?", "/ab", false},
      {"/?", "/\xC3\xA9", true},
      {"/a?b", "/a/b", false},
      {"/[a-c]x", "/bx", true},
      {"/[a-c]x", "/dx", false},
      {"/[!a-c]x", "/dx", true},
      {"/[!a-c]x", "/ax", false},
      {"/a[!x]b", "/a/b", false},
      {"/[]]", "/]", true},
      {"/[a-]", "/-", true},
      {"/[\xC3\xA0-\xC3\xB0]", "/\xC3\xA9", true},
      {"/**", "/a/b/c", true},
      {"/a/**", "/a/b/c", true},
      {"/a/**", "/a", false},
      {"/**/c", "/a/b/c", true},
      {"/**/c", "/c", true},
      {"/**/c", "/a/xc", false},
      {"/**/**/c", "/c", true},
      {"/a/**/c", "/a/c", true},
      {"/a/**/c", "/a/b/b/c", true},
      {"/a**c", "/ab/bc", true},
      {"c", "/c", true},
      {"c", "/a/b/c", true},
      {"c", "/a/xc", false},
      {"b/c", "/a/b/c", true},
      {"b/c", "/a/xb/c", false},
      {"*.raw", "/a/b.raw", true},
      {"/\\*", "/*", true},
      {"/\\*", "/a", false},
      {"/\\[a]", "/[a]", true},
      {"**/c", "/a/c", true},
      {"**/c", "/c", true},
      {"/", "/", true},
  };
  for (const auto& c : cases) BOOST_TEST(path_pattern(c.pattern).matches(c.path) == c.matches, c.pattern << " and " << c.path);
  BOOST_CHECK_THROW(path_pattern(""), zarrbits::error);
  BOOST_CHECK_THROW(path_pattern("/[a"), zarrbits::error);
}

BOOST_AUTO_TEST_CASE(no_pattern_makes_matching_explode) {
  std::string pattern = "/";
  for (int i = 0; i < 100; ++i) pattern += "*a**";
  BOOST_TEST(path_pattern(pattern).matches("/" + std::string(2000, 'a') + "b/c"));
  BOOST_TEST(!path_pattern(pattern + "x").matches("/" + std::string(2000, 'a') + "b/c"));
}

BOOST_AUTO_TEST_CASE(groups_stand_for_all_below_and_exclusion_wins) {
  selection s({"/a", "temperature"}, {"/a/b"});
  BOOST_TEST(s.matches("/a"));
  BOOST_TEST(s.matches("/a/x/y"));
  BOOST_TEST(!s.matches("/a/b"));
  BOOST_TEST(!s.matches("/a/b/temperature"));
  BOOST_TEST(s.matches("/c/temperature"));
  BOOST_TEST(!s.matches("/c"));
  s.require_all_matched();
  selection none({}, {"/x"});
  BOOST_TEST(none.matches("/y"));
  BOOST_CHECK_THROW(none.require_all_matched(), zarrbits::error);
}
