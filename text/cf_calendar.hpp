// SPDX-License-Identifier: BSL-1.0
//
// Times as the CF conventions have them: "hours since 1970-01-01 00:00", and a calendar.
//
//   const auto epoch = parse_epoch("days since 2000-01-01", "noleap");
//   epoch->unit;    // microseconds of a day
//   epoch->start;   // microseconds from the year 0 of this calendar
//
#ifndef ZARRBITS_TEXT_CF_CALENDAR_HPP
#define ZARRBITS_TEXT_CF_CALENDAR_HPP

#include <cstdint>
#include <optional>
#include <string>

namespace zarrbits::text {

struct cf_epoch {
  std::int64_t unit = 0;   // microseconds
  std::int64_t start = 0;  // microseconds since the calendar's year 0
};

// One name for each calendar: "gregorian" and "" become "standard", "365_day" becomes "noleap", "366_day" "all_leap".
std::string calendar_name(const std::string& text);

// The time from which on two calendars give each instant the same date, in microseconds as cf_epoch::start; the smallest number
// if they are the same. Empty if they never agree. Since 1582-10-15 the standard calendar is the proleptic Gregorian one, which
// xarray writes.
std::optional<std::int64_t> calendars_agree_from(const std::string& calendar, const std::string& other);

// True for "days since ...", even if the rest cannot be read.
bool is_time_units(const std::string& units);

// Empty if the unit has no fixed length (months, years), or the date or the calendar cannot be read.
std::optional<cf_epoch> parse_epoch(const std::string& units, const std::string& calendar);

}  // namespace zarrbits::text

#endif
