// SPDX-License-Identifier: BSL-1.0
#include "text/base64.hpp"
#include "text/cf_calendar.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"
#include "text/reserved_names.hpp"
#include "text/sha256.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace zarrbits::text;

namespace {

std::string decoded(const std::string& s) {
  std::string out;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '%' && i + 2 < s.size()) {
      out += static_cast<char>(std::stoi(s.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += s[i];
    }
  }
  return out;
}

// Microseconds from one "... since ..." to another; the test fails where either cannot be read.
std::int64_t between(const std::string& first, const std::string& second, const std::string& calendar) {
  const auto a = parse_epoch(first, calendar), b = parse_epoch(second, calendar);
  BOOST_TEST(a.has_value(), first << ", " << calendar);
  BOOST_TEST(b.has_value(), second << ", " << calendar);
  return a && b ? b->start - a->start : std::numeric_limits<std::int64_t>::max();
}

}  // namespace

BOOST_AUTO_TEST_CASE(ordinary_names_stay) {
  for (const char* name : {"temperature", "data.1", ".attributes", "c", "Data Fields", "_x", "größe", "a:b*c?", "1", "% mito",
                           "50%", "q%", "%", "a%20b", "a%2Fb"}) {
    BOOST_TEST(node_name(name) == name);
  }
}

BOOST_AUTO_TEST_CASE(no_name_leaves_the_store_or_hides_a_node) {
  const std::string hostile[] = {"..",
                                 ".",
                                 "...",
                                 "/etc",
                                 "a\\b",
                                 "..\\..",
                                 "__init__",
                                 "zarr.json",
                                 "ZARR.JSON",
                                 ".zgroup",
                                 ".zarray",
                                 ".zattrs",
                                 ".ZMetadata",
                                 ".zarrbits-unfinished",
                                 ".Zarrbits-1.tmp",
                                 "\x01\n",
                                 std::string("\xFF\xFE"),
                                 std::string("a\xC0\xAF") + "b",
                                 std::string(300, 'x'),
                                 std::string(100, '\n')};
  std::set<std::string> all;
  for (const std::string& name : hostile) {
    const std::string n = node_name(name);
    BOOST_TEST_CONTEXT(n) {
      BOOST_TEST(!n.empty());
      BOOST_TEST(n.size() <= 255U);
      BOOST_TEST(n.find_first_not_of('.') != std::string::npos);
      BOOST_TEST(n.find('/') == std::string::npos);
      BOOST_TEST(n.find('\\') == std::string::npos);
      BOOST_TEST(n.substr(0, 2) != "__");
      BOOST_TEST(case_fold(n) != "zarr.json");
      BOOST_TEST(!case_fold(n).starts_with(".z"));  // nor Zarr v2's
      BOOST_TEST(!case_fold(n).starts_with(internal_prefix));
      BOOST_TEST(is_utf8(n));
      if (n.find("%~") == std::string::npos) BOOST_TEST(decoded(n) == name);
      BOOST_TEST(all.insert(n).second);
    }
  }
}

BOOST_AUTO_TEST_CASE(escaped_names_do_not_collide_with_plain_ones) {
  BOOST_TEST(node_name("a\\b") == "a%5Cb");
  const std::vector<std::string_view> names = {"a/b", "a%2Fb", "/", "%2F", "other"};
  const std::vector<std::string> nodes = node_names(names);
  BOOST_TEST(nodes.front() == "a%2Fb");
  BOOST_TEST(nodes.back() == "other");
  BOOST_TEST(std::set<std::string>(nodes.begin(), nodes.end()).size() == names.size());
  for (const std::string& n : nodes) BOOST_TEST(n.find('/') == std::string::npos);
  BOOST_TEST(with_reserved_prefix("__a", node_name("__a")) == "__a");
  BOOST_TEST(with_reserved_prefix("__a\\", node_name("__a\\")) == "__a%5C");
  BOOST_TEST(with_reserved_prefix("_a", node_name("_a")) == "_a");
  BOOST_TEST(with_reserved_prefix("%5F_a", node_name("%5F_a")) == "%5F_a");
  BOOST_TEST(node_name(std::string(256, 'a')) != node_name(std::string(257, 'a')));
  BOOST_TEST(node_name(std::string(256, 'a')) == std::string(200, 'a') + "%~02d7160d77e18c6447be80c2e355c7ed");  // sha256sum
  BOOST_TEST(node_name("a" + std::string(90, '\\')).starts_with("a%5C"));
  BOOST_TEST(node_name("a" + std::string(90, '\\')).find("%5C%~") == 196U);  // no escape is cut
}

BOOST_AUTO_TEST_CASE(names_that_differ_in_case_alone_can_be_told_apart) {
  BOOST_TEST(make_case_unique("data") == "%64ata");
  BOOST_TEST(decoded(make_case_unique("data")) == "data");
  BOOST_TEST(make_case_unique(make_case_unique("ab")) == "%61%62");
}

BOOST_AUTO_TEST_CASE(only_well_formed_utf8_is_text) {
  for (const std::string s : {"", "a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xEE\x80\x80"})
    BOOST_TEST(is_utf8(s), escape_name(s));
  for (const std::string s :
       {"\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "a\xFF"}) {
    BOOST_TEST(!is_utf8(s), escape_name(s));
  }
  BOOST_TEST(escape_name("a\xFFz%") == "a%FFz%");
  // as Python's bytes.decode("utf-8", "replace") has it
  const std::string unknown = "\xEF\xBF\xBD";
  BOOST_TEST(zarrbits::text::replace_invalid_utf8("\xB5g m-3") == unknown + "g m-3");
  BOOST_TEST(zarrbits::text::replace_invalid_utf8("\xC3\xA9\xE2\x82") == "\xC3\xA9" + unknown);
  BOOST_TEST(zarrbits::text::replace_invalid_utf8("\xE2\x82\xE2\x82\xAC") == unknown + "\xE2\x82\xAC");
  BOOST_TEST(zarrbits::text::replace_invalid_utf8("\xF0\x9F\x98z") == unknown + "z");
  BOOST_TEST(zarrbits::text::replace_invalid_utf8("\xED\xA0\x80") == unknown + unknown + unknown);
  BOOST_TEST(zarrbits::text::replace_invalid_utf8("\xC0\xAF\xFF") == unknown + unknown + unknown);
}

BOOST_AUTO_TEST_CASE(no_two_names_are_shown_as_one) {
  for (const char* name : {"100%", "a%20b", "%ff", "%7F", "%%", "%"}) BOOST_TEST(escape_name(name) == name);
  BOOST_TEST(escape_name("x%FF") == "x%25FF");
  BOOST_TEST(escape_invalid_utf8("x%FF\xFF") == "x%FF%FF");
  const std::string letters = "%25F8a\xFF\xC3\xA9";
  std::set<std::string> all;
  std::size_t names = 0;
  for (std::size_t n = 0; n < 9 * 9 * 9 * 9 * 9; ++n) {
    std::string name;
    for (std::size_t rest = n, i = 0; i < 5; ++i, rest /= 9) name += letters[rest % 9];
    const std::string s = escape_name(name);
    if (unescape_name(s) != name || !is_utf8(s)) BOOST_ERROR(s);
    names += all.insert(s).second;
  }
  BOOST_TEST(names == all.size());
  BOOST_TEST(names == 59049U);
}

BOOST_AUTO_TEST_CASE(sha256_is_that_of_fips_180_4) {
  const auto of = [](const std::string& text, std::size_t step) {
    sha256 sum;
    for (std::size_t i = 0; i < text.size(); i += step) sum.add(std::string_view(text).substr(i, step));
    return sum.hex();
  };
  BOOST_TEST(of("", 1) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  BOOST_TEST(of("abc", 1) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  BOOST_TEST(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 7) ==
             "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  BOOST_TEST(of(std::string(1'000'000, 'a'), 999) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

BOOST_AUTO_TEST_CASE(base64_is_that_of_rfc_4648) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
                                                         {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : vectors) BOOST_TEST(base64(std::string_view(plain)) == coded);
  BOOST_TEST(base64(std::string_view("\xFB\xFF", 2)) == "+/8=");
}

BOOST_AUTO_TEST_CASE(calendars_of_cf_have_their_own_days) {
  const auto days = [](const char* calendar, const char* first, const char* second) {
    return between(std::string("days since ") + first, std::string("days since ") + second, calendar) / 86'400'000'000;
  };
  BOOST_TEST(days("proleptic_gregorian", "1970-01-01", "2000-03-01") == 11017);  // Python's date.toordinal()
  BOOST_TEST(days("proleptic_gregorian", "0001-01-01", "1970-01-01") == 719162);
  BOOST_TEST(days("proleptic_gregorian", "-0001-12-31", "0000-01-01") == 1);
  BOOST_TEST(days("standard", "1582-10-04", "1582-10-15") == 1);  // when the Gregorian calendar came
  BOOST_TEST(days("proleptic_gregorian", "1582-10-04", "1582-10-15") == 11);
  BOOST_TEST(days("", "1900-02-28", "1900-03-01") == 1);
  BOOST_TEST(days("julian", "1900-02-28", "1900-03-01") == 2);
  BOOST_TEST(days("standard", "1500-02-28", "1500-03-01") == 2);
  BOOST_TEST(days("360_day", "2000-01-30", "2001-02-30") == 390);
  BOOST_TEST(days("noleap", "2000-02-28", "2000-03-01") == 1);
  BOOST_TEST(days("365_day", "2000-01-01", "2001-01-01") == 365);
  BOOST_TEST(days("all_leap", "2001-02-28", "2001-03-01") == 2);
  BOOST_TEST(days("366_day", "2001-01-01", "2002-01-01") == 366);
  for (const auto& [calendar, date] : {std::pair{"standard", "1582-10-10"},
                                       {"360_day", "2000-01-31"},
                                       {"noleap", "2000-02-29"},
                                       {"all_leap", "2000-02-30"},
                                       {"standard", "2000-13-01"},
                                       {"standard", "2000-00-01"},
                                       {"standard", "2000-01-32"},
                                       {"lunar", "2000-01-01"},
                                       {"standard", "2001-02-29"},
                                       {"standard", "1900-02-29"},
                                       {"proleptic_gregorian", "1500-02-29"},
                                       {"julian", "2001-02-29"},
                                       {"standard", "2000-04-31"}})
    BOOST_TEST(!parse_epoch(std::string("days since ") + date, calendar), calendar << " " << date);
  for (const char* there : {"1900-02-29", "1500-02-29"})
    BOOST_TEST(parse_epoch(std::string("days since ") + there, "julian").has_value(), there);
  BOOST_TEST(parse_epoch("days since 1500-02-29", "standard").has_value());
}

BOOST_AUTO_TEST_CASE(times_of_day_and_zones_of_cf_are_read_or_refused) {
  const auto seconds = [](const std::string& clock) {
    return static_cast<double>(between("s since 2000-01-01", "s since 2000-01-01" + clock, "standard")) / 1e6;
  };
  BOOST_TEST(seconds(" 12") == 43200);
  BOOST_TEST(seconds(" 12:30:15.25") == 45015.25);
  BOOST_TEST(seconds("T06:00Z") == 21600);
  BOOST_TEST(seconds(" 6:00:00 UTC") == 21600);
  BOOST_TEST(seconds(" 00:00 +01:00") == -3600);
  BOOST_TEST(seconds(" 00:00 -0530") == 19800);
  BOOST_TEST(seconds(" 00:00 +1") == -3600);
  BOOST_TEST(parse_epoch("msec since 2000-01-01", "")->unit == 1000);
  for (const char* wrong : {" 25:00", " 12:60", " 12:00:61", " 12:00:00:00", " 12:", " 0:0:0.0000001", " 0:0:0.2x", " 0:0 CET",
                            " 0:0 +x", " 0:0 UTC more"})
    BOOST_TEST(!parse_epoch(std::string("s since 2000-01-01") + wrong, ""), wrong);
  for (const char* units :
       {"months since 2000-01-01", "days since yesterday", "days since 2000-01", "days until 2000-01-01", "days"})
    BOOST_TEST(!parse_epoch(units, ""), units);
}
