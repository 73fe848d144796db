// SPDX-License-Identifier: BSL-1.0
//
// Times of the CF conventions, computed for verification alone: the conversion has text/cf_calendar.hpp, with another algorithm,
// so that a mistake in one of them shows.
//
//   const auto scale = time_scale_of("days since 2000-01-01", "noleap");
//   scale->unit;    // 86,400,000,000: microseconds of a day
//   scale->start;   // microseconds from the calendar's year 0 to 2000-01-01
//
#ifndef ZARRBITS_VERIFY_CF_TIME_HPP
#define ZARRBITS_VERIFY_CF_TIME_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zarrbits::verification {

struct time_scale {
  std::int64_t unit = 0;   // microseconds
  std::int64_t start = 0;  // microseconds since the calendar's year 0
};

// One name for each calendar: "standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"; others as they are,
// in lower case.
std::string calendar_of(std::string_view text);

// Days since January 1st of the calendar's year 0. Empty for a date that the calendar does not have, or an unknown calendar. The
// standard calendar counts from the day from which the proleptic Gregorian one does.
std::optional<std::int64_t> days_to(std::string_view calendar, std::int64_t year, std::int64_t month, std::int64_t day);

// True for "days since ...", even if the rest cannot be read.
bool is_time_units(std::string_view units);

// Empty if `units` are not "UNIT since DATE" with a unit of a fixed length and a date of the calendar.
std::optional<time_scale> time_scale_of(std::string_view units, std::string_view calendar);

// The instant from which on two calendars have the same dates, in microseconds as time_scale::start; the smallest number if they
// are the same calendar. Empty if they never agree.
std::optional<std::int64_t> calendars_agree_from(std::string_view one, std::string_view other);

}  // namespace zarrbits::verification

#endif
