// SPDX-License-Identifier: BSL-1.0
#include "verify/cf_time.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

namespace zarrbits::verification {

namespace {

enum class leap_years { none, all, every_fourth, gregorian };

// Floors, for negative years too.
std::int64_t multiples_below(std::int64_t year, std::int64_t n) {
  const std::int64_t last = year - 1;
  return last >= 0 ? last / n + 1 : -((-last - 1) / n);
}

// Leap years from year 0 until before `year`, negative if `year` is before 0.
std::int64_t leap_days_before(std::int64_t year, leap_years rule) {
  switch (rule) {
    case leap_years::none: return 0;
    case leap_years::all: return year;
    case leap_years::every_fourth: return multiples_below(year, 4);
    case leap_years::gregorian: return multiples_below(year, 4) - multiples_below(year, 100) + multiples_below(year, 400);
  }
  return 0;
}

bool is_leap(std::int64_t year, leap_years rule) { return leap_days_before(year + 1, rule) > leap_days_before(year, rule); }

// Empty if there is no such date.
std::optional<std::int64_t> count_days(std::int64_t year, std::int64_t month, std::int64_t day, leap_years rule) {
  constexpr std::int64_t before_month[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
  if (month < 1 || month > 12) return {};
  const std::int64_t leap = is_leap(year, rule) ? 1 : 0;
  const auto begin_of = [&](std::int64_t m) { return before_month[m - 1] + (m > 2 ? leap : 0); };
  const std::int64_t length = (month == 12 ? 365 + leap : begin_of(month + 1)) - begin_of(month);
  if (day < 1 || day > length) return {};
  return 365 * year + leap_days_before(year, rule) + begin_of(month) + day - 1;
}

// 1582-10-04 of the Julian calendar was followed by 1582-10-15 of the Gregorian one.
std::int64_t julian_to_gregorian() {
  return *count_days(1582, 10, 15, leap_years::gregorian) - (*count_days(1582, 10, 4, leap_years::every_fourth) + 1);
}

// Reads a text from its beginning.
class scanner {
 public:
  explicit scanner(std::string_view text) : remaining_(text) {}
  bool at_end() const { return remaining_.empty(); }
  bool skip_spaces() {
    const std::size_t n = std::min(remaining_.find_first_not_of(" \t"), remaining_.size());
    remaining_.remove_prefix(n);
    return n > 0;
  }
  void skip_word() { remaining_.remove_prefix(std::min(remaining_.find_first_of(" \t"), remaining_.size())); }
  bool take(char c) {
    if (remaining_.empty() || lower(remaining_.front()) != c) return false;
    remaining_.remove_prefix(1);
    return true;
  }
  // Letters, in lower case.
  std::string word() {
    std::string text;
    while (!remaining_.empty() && lower(remaining_.front()) >= 'a' && lower(remaining_.front()) <= 'z') {
      text += lower(remaining_.front());
      remaining_.remove_prefix(1);
    }
    return text;
  }
  // Digits. `count`: how many there were.
  std::optional<std::int64_t> number(std::size_t* count = nullptr) {
    std::int64_t value = 0;
    std::size_t n = 0;
    for (; n < remaining_.size() && remaining_[n] >= '0' && remaining_[n] <= '9'; ++n) {
      if (n >= 15) return {};
      value = 10 * value + (remaining_[n] - '0');
    }
    remaining_.remove_prefix(n);
    if (count) *count = n;
    return n == 0 ? std::nullopt : std::optional(value);
  }
  static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

 private:
  std::string_view remaining_;
};

constexpr std::int64_t one_second = 1'000'000;

std::optional<std::int64_t> unit_named(const std::string& name) {
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_one_of({"d", "day", "days"})) return 24 * 60 * 60 * one_second;
  if (is_one_of({"h", "hr", "hrs", "hour", "hours"})) return 60 * 60 * one_second;
  if (is_one_of({"min", "mins", "minute", "minutes"})) return 60 * one_second;
  if (is_one_of({"s", "sec", "secs", "second", "seconds"})) return one_second;
  if (is_one_of({"ms", "msec", "msecs", "millisec", "millisecs", "millisecond", "milliseconds"})) return one_second / 1000;
  if (is_one_of({"us", "microsec", "microsecs", "microsecond", "microseconds"})) return 1;
  return {};
}

// "12", "12:30", "12:30:15.25", and "1230" for a zone. In microseconds.
std::optional<std::int64_t> clock_time(scanner& in, bool is_zone) {
  std::size_t digits = 0;
  const auto first = in.number(&digits);
  if (!first) return {};
  std::int64_t hours = *first, minutes = 0, seconds = 0, micro = 0;
  if (is_zone && digits == 4) {
    hours = *first / 100;
    minutes = *first % 100;
  } else if (in.take(':')) {
    const auto second_part = in.number();
    if (!second_part) return {};
    minutes = *second_part;
    if (in.take(':')) {
      const auto third = in.number();
      if (!third) return {};
      seconds = *third;
    }
  }
  if (in.take('.')) {
    std::size_t places = 0;
    const auto part = in.number(&places);
    if (places > 0 && !part) return {};
    micro = part.value_or(0);
    for (; places < 6; ++places) micro *= 10;
    for (; places > 6; --places) {
      if (micro % 10 != 0) return {};  // finer than microseconds
      micro /= 10;
    }
  }
  if (hours > 24 || minutes > 59 || seconds > 60) return {};
  return ((hours * 60 + minutes) * 60 + seconds) * one_second + micro;
}

// "Z", "UTC", "GMT", "+01:00", "-0530"; nothing is UTC. In microseconds ahead of UTC.
std::optional<std::int64_t> zone(scanner& in) {
  if (in.at_end()) return 0;
  for (const bool is_negative : {false, true}) {
    if (!in.take(is_negative ? '-' : '+')) continue;
    const auto utc_offset = clock_time(in, true);
    return utc_offset ? std::optional(is_negative ? -*utc_offset : *utc_offset) : std::nullopt;
  }
  const std::string name = in.word();
  return name == "z" || name == "utc" || name == "gmt" ? std::optional<std::int64_t>(0) : std::nullopt;
}

}  // namespace

std::string calendar_of(std::string_view text) {
  std::string name(text);
  std::transform(name.begin(), name.end(), name.begin(), scanner::lower);
  for (const auto& [alias, usual] :
       {std::pair{"", "standard"}, {"gregorian", "standard"}, {"365_day", "noleap"}, {"366_day", "all_leap"}}) {
    if (name == alias) return usual;
  }
  return name;
}

std::optional<std::int64_t> days_to(std::string_view calendar, std::int64_t year, std::int64_t month, std::int64_t day) {
  const std::string name = calendar_of(calendar);
  if (year < -100'000 || year > 100'000) return {};
  if (name == "360_day")
    return month < 1 || month > 12 || day < 1 || day > 30 ? std::nullopt : std::optional((12 * year + month - 1) * 30 + day - 1);
  if (name == "noleap") return count_days(year, month, day, leap_years::none);
  if (name == "all_leap") return count_days(year, month, day, leap_years::all);
  const auto gregorian = count_days(year, month, day, leap_years::gregorian),
             julian = count_days(year, month, day, leap_years::every_fourth);
  const auto julian_day = julian ? std::optional(*julian + julian_to_gregorian()) : std::nullopt;
  if (name == "proleptic_gregorian") return gregorian;
  if (name == "julian") return julian_day;
  if (name != "standard") return {};
  const std::int64_t change = *count_days(1582, 10, 15, leap_years::gregorian);
  if (gregorian && *gregorian >= change) return gregorian;
  return julian_day && *julian_day < change ? julian_day : std::nullopt;
}

bool is_time_units(std::string_view units) {
  scanner in(units);
  in.skip_spaces();
  in.skip_word();
  return in.skip_spaces() && in.word() == "since" && in.skip_spaces() && !in.at_end();
}

std::optional<time_scale> time_scale_of(std::string_view units, std::string_view calendar) {
  scanner in(units);
  in.skip_spaces();
  const auto unit = unit_named(in.word());
  if (!unit || !in.skip_spaces() || in.word() != "since" || !in.skip_spaces()) return {};
  const bool before_0 = in.take('-');
  const auto year = in.number();
  if (!year || !in.take('-')) return {};
  const auto month = in.number();
  if (!month || !in.take('-')) return {};
  const auto day = in.number();
  if (!day) return {};
  const auto days = days_to(calendar, before_0 ? -*year : *year, *month, *day);
  if (!days) return {};
  std::int64_t start = *days * 24 * 60 * 60 * one_second;
  const bool separated = in.skip_spaces() || in.take('t');
  if (separated) {
    scanner lookahead = in;
    if (const auto time = clock_time(lookahead, false)) {
      start += *time;
      in = lookahead;
    } else if (lookahead.number()) {
      return {};
    }
  }
  in.skip_spaces();
  const auto utc_offset = zone(in);
  in.skip_spaces();
  if (!utc_offset || !in.at_end()) return {};
  return time_scale{*unit, start - *utc_offset};
}

std::optional<std::int64_t> calendars_agree_from(std::string_view one, std::string_view other) {
  const std::string a = calendar_of(one), b = calendar_of(other);
  if (a == b) return std::numeric_limits<std::int64_t>::min();
  const auto either = [&](std::string_view name) { return a == name || b == name; };
  if (!either("standard") || !either("proleptic_gregorian")) return {};
  return *days_to("standard", 1582, 10, 15) * 24 * 60 * 60 * one_second;
}

}  // namespace zarrbits::verification
