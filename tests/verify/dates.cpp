// SPDX-License-Identifier: BSL-1.0
//
// The conversion and the verification have an algorithm each for CF's calendars: they have to agree.
//
#include "text/cf_calendar.hpp"
#include "verify/cf_time.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <string>

using namespace zarrbits;
using verification::days_to;
using verification::time_scale_of;

namespace {

constexpr std::int64_t day = std::int64_t{86'400} * 1'000'000;
const char* const calendars[] = {
    "standard", "gregorian", "proleptic_gregorian", "julian", "noleap", "365_day", "all_leap", "366_day", "360_day", "none"};

// Days from 1970-01-01, or what no date has.
std::int64_t from_1970(std::int64_t start, std::int64_t of_1970) { return (start - of_1970) / day; }

}  // namespace

BOOST_AUTO_TEST_CASE(both_algorithms_have_the_same_days) {
  std::int64_t compared = 0;
  for (const std::string calendar : calendars) {
    const auto here = text::parse_epoch("days since 1970-01-01", calendar);
    const auto there = time_scale_of("days since 1970-01-01", calendar);
    BOOST_REQUIRE_MESSAGE(here.has_value() == there.has_value() && here.has_value() == (calendar != "none"), calendar);
    if (!here) continue;
    // all days of some centuries, and days of years further away; the days that the standard calendar left out too
    for (std::int64_t year = -900; year <= 3300; year += year % 100 > -3 && year % 100 < 4 ? 1
                                                         : year > 1570 && year < 1590      ? 1
                                                                                           : 7) {
      for (int month = 0; month <= 13; ++month) {
        for (int d = 0; d <= 32; ++d) {
          const std::string date = std::to_string(year) + "-" + std::to_string(month) + "-" + std::to_string(d);
          const auto a = text::parse_epoch("days since " + date, calendar);
          const auto b = time_scale_of("days since " + date, calendar);
          BOOST_REQUIRE_MESSAGE(a.has_value() == b.has_value(), calendar << " " << date);
          if (!a) continue;
          BOOST_REQUIRE_MESSAGE(from_1970(a->start, here->start) == from_1970(b->start, there->start), calendar << " " << date);
          ++compared;
        }
      }
    }
  }
  BOOST_TEST(compared > 1'000'000);
}

BOOST_AUTO_TEST_CASE(both_read_the_same_units) {
  for (const char* units :
       {"days since 2000-01-01", "Days Since 2000-1-1", "hours since 1970-01-01 00:00", "seconds since 1970-01-01T00:00:00Z",
        "seconds since 1970-01-01 12:30:15.25", "ms since 1970-01-01 06:00 +01:00", "us since 1970-01-01 06:00:00 -0530",
        "min since 1970-01-01 0:0:0 UTC", "h since -0001-01-01", "d since 1582-10-15", "s since 1970-01-01 24:00",
        " days  since 1970-01-01 "}) {
    const auto a = text::parse_epoch(units, "standard"), zero = text::parse_epoch("s since 1970-01-01", "standard");
    const auto b = time_scale_of(units, "standard"), other_zero = time_scale_of("s since 1970-01-01", "standard");
    BOOST_REQUIRE_MESSAGE(a && b && zero && other_zero, units);
    BOOST_TEST(a->unit == b->unit, units);
    BOOST_TEST(a->start - zero->start == b->start - other_zero->start, units);
  }
  for (const char* units :
       {"", "m", "months since 2000-01-01", "days since yesterday", "days since 2000-01", "days until 2000-01-01",
        "days since 2000-01-01 25:00", "days since 2000-01-01 12:60", "days since 2000-13-01", "s since 2000-01-01 0:0:0.0000001",
        "days since 2000-01-01 0:0 CET", "days since 2000-01-01 0:0 UTC more", "days since 999999999999999999999-01-01"}) {
    BOOST_TEST(!text::parse_epoch(units, "standard").has_value(), units);
    BOOST_TEST(!time_scale_of(units, "standard").has_value(), units);
  }
}

BOOST_AUTO_TEST_CASE(both_know_from_when_on_calendars_agree) {
  for (const std::string a : calendars) {
    for (const std::string b : calendars) {
      const auto here = text::calendars_agree_from(a, b), there = verification::calendars_agree_from(a, b);
      BOOST_REQUIRE_MESSAGE(here.has_value() == there.has_value(), a << " and " << b);
      if (!here || *here == std::numeric_limits<std::int64_t>::min()) {
        BOOST_TEST((here == there));
        continue;
      }
      const auto zero = text::parse_epoch("s since 1970-01-01", a);
      const auto other_zero = time_scale_of("s since 1970-01-01", a);
      BOOST_TEST(*here - zero->start == *there - other_zero->start, a << " and " << b);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_days_of_well_known_dates) {
  // Julian day numbers 0, 1721426 and 2440588
  BOOST_TEST(*days_to("standard", 1970, 1, 1) - *days_to("julian", -4712, 1, 1) == 2440588);
  BOOST_TEST(*days_to("proleptic_gregorian", 1, 1, 1) - *days_to("julian", -4712, 1, 1) == 1721426);
  BOOST_TEST(*days_to("standard", 1582, 10, 15) - *days_to("standard", 1582, 10, 4) == 1);
  BOOST_TEST(!days_to("standard", 1582, 10, 10).has_value());
}
