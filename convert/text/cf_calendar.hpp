// SPDX-License-Identifier: BSL-1.0
//
// Times as the CF conventions have them: "hours since 1970-01-01 00:00", and a calendar.
//
//   const auto epoch = parse_epoch("days since 2000-01-01", "noleap");
//   epoch->unit;    // microseconds of a day
//   epoch->start;   // microseconds from the year 0 of this calendar
//
#ifndef ZARRBITS_CONVERT_TEXT_CF_CALENDAR_HPP
#define ZARRBITS_CONVERT_TEXT_CF_CALENDAR_HPP

#include <cstdint>
#include <optional>
#include <string>

namespace zarrbits::conversion {

struct cf_epoch {
  std::int64_t unit = 0;   // microseconds
  std::int64_t start = 0;  // microseconds since the calendar's year 0
};

// One name for each calendar: "gregorian" and no name at all are "standard", "365_day" is "noleap", "366_day" is "all_leap".
std::string calendar_name(const std::string& text);

// From when on two calendars give each instant the same date, in microseconds as cf_epoch::start; the smallest number where they
// are one. Nothing where they never do. Since 1582-10-15 the standard calendar is the proleptic Gregorian one, which is what
// xarray writes.
std::optional<std::int64_t> same_from(const std::string& calendar, const std::string& other);

// True of "days since ...", whether or not the rest can be read.
bool is_time_units(const std::string& units);

// Nothing where the unit has no fixed length (months, years), or the date or the calendar cannot be read.
std::optional<cf_epoch> parse_epoch(const std::string& units, const std::string& calendar);

}  // namespace zarrbits::conversion

#endif
