// SPDX-License-Identifier: BSL-1.0
#include "text/cf_calendar.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::text {

namespace {

constexpr std::int64_t second = 1'000'000, day = 86'400 * second;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ' ' || c == '\t') {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Units of UDUNITS and xarray.
std::optional<std::int64_t> unit_of(const std::string& word) {
  struct row {
    std::int64_t length;
    std::array<std::string_view, 8> names;
  };
  static constexpr row rows[] = {
      {1, {"microseconds", "microsecond", "microsec", "microsecs", "us"}},
      {second / 1000, {"milliseconds", "millisecond", "millisec", "millisecs", "msec", "msecs", "ms"}},
      {second, {"seconds", "second", "sec", "secs", "s"}},
      {60 * second, {"minutes", "minute", "min", "mins"}},
      {3600 * second, {"hours", "hour", "hr", "hrs", "h"}},
      {day, {"days", "day", "d"}},
  };
  for (const row& r : rows) {
    if (!word.empty() && std::find(r.names.begin(), r.names.end(), word) != r.names.end()) return r.length;
  }
  return {};
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Days since 0000-03-01, in the Gregorian calendar for all times, or in the Julian one.
std::int64_t days_before(std::int64_t y, std::int64_t m, std::int64_t d, bool julian) {
  y -= m <= 2;
  const std::int64_t of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  const std::int64_t leap = floor_div(y, 4) - (julian ? 0 : floor_div(y, 100) - floor_div(y, 400));
  return 365 * y + leap + of_year - (julian ? 2 : 0);  // both count from the same day
}

std::optional<std::int64_t> day_number(const std::string& calendar, std::int64_t y, std::int64_t m, std::int64_t d) {
  static constexpr std::array<std::int64_t, 12> lengths = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (m < 1 || m > 12 || d < 1 || d > 31 || y < -100'000 || y > 100'000) return {};
  if (calendar == "360_day") return d > 30 ? std::nullopt : std::optional(360 * y + 30 * (m - 1) + d - 1);
  const auto date = std::array{y, m, d};
  const bool julian = calendar == "julian" || (calendar == "standard" && date <= std::array<std::int64_t, 3>{1582, 10, 4});
  const bool every_year = calendar == "all_leap", no_year = calendar == "noleap";
  const bool leap = every_year || (!no_year && y % 4 == 0 && (julian || y % 100 != 0 || y % 400 == 0));
  const auto length = [&](std::int64_t month) { return lengths[static_cast<std::size_t>(month - 1)] + (leap && month == 2); };
  if (d > length(m)) return {};
  if (every_year || no_year) {
    std::int64_t days = (leap ? 366 : 365) * y + d - 1;
    for (std::int64_t i = 1; i < m; ++i) days += length(i);
    return days;
  }
  if (calendar == "proleptic_gregorian" || calendar == "julian") return days_before(y, m, d, julian);
  if (calendar != "standard") return {};
  if (!julian && date < std::array<std::int64_t, 3>{1582, 10, 15}) return {};  // days that never existed
  return days_before(y, m, d, julian);
}

// Numbers between these separators; false if there is anything else.
bool split_numbers(std::string_view text, char separator, std::vector<std::int64_t>& numbers) {
  while (!text.empty()) {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc()) return false;
    numbers.push_back(n);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != separator || text.size() == 1) return false;
    text.remove_prefix(1);
  }
  return true;
}

// "12", "12:30", "12:30:15.25", as microseconds.
std::optional<std::int64_t> time_of_day(std::string_view text) {
  std::int64_t micro = 0;
  if (const auto dot = text.find('.'); dot != text.npos) {
    std::int64_t place = second / 10;
    for (const char c : text.substr(dot + 1)) {
      if (c < '0' || c > '9') return {};
      if (place == 0 && c != '0') return {};
      micro += (c - '0') * place;
      place /= 10;
    }
    text = text.substr(0, dot);
  }
  std::vector<std::int64_t> parts;
  if (!split_numbers(text, ':', parts) || parts.empty() || parts.size() > 3) return {};
  parts.resize(3);
  if (parts[0] < 0 || parts[0] > 24 || parts[1] < 0 || parts[1] > 59 || parts[2] < 0 || parts[2] > 60) return {};
  return (parts[0] * 3600 + parts[1] * 60 + parts[2]) * second + micro;
}

// "Z", "UTC", "+01:00", "-0530", "+1": offset from UTC.
std::optional<std::int64_t> zone_of(const std::string& text) {
  const std::string name = lower(text);
  if (name == "z" || name == "utc" || name == "gmt") return 0;
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return {};
  std::string clock = text.substr(1);
  if (clock.find(':') == clock.npos && clock.size() == 4) clock.insert(2, ":");
  const auto offset = time_of_day(clock);
  if (!offset) return {};
  return text[0] == '-' ? -*offset : *offset;
}

}  // namespace

std::string calendar_name(const std::string& text) {
  const std::string name = lower(text);
  if (name.empty() || name == "gregorian") return "standard";
  if (name == "365_day") return "noleap";
  if (name == "366_day") return "all_leap";
  return name;
}

std::optional<std::int64_t> calendars_agree_from(const std::string& calendar, const std::string& other) {
  const std::string a = calendar_name(calendar), b = calendar_name(other);
  if (a == b) return std::numeric_limits<std::int64_t>::min();
  const std::string proleptic = "proleptic_gregorian";
  if ((a != "standard" || b != proleptic) && (b != "standard" || a != proleptic)) return {};
  return days_before(1582, 10, 15, false) * day;
}

bool is_time_units(const std::string& units) {
  const auto words = words_of(lower(units));
  return words.size() >= 3 && words[1] == "since";
}

std::optional<cf_epoch> parse_epoch(const std::string& units, const std::string& calendar) {
  if (!is_time_units(units)) return {};
  std::vector<std::string> words = words_of(units);
  const auto unit = unit_of(lower(words[0]));
  if (!unit) return {};
  words.erase(words.begin(), words.begin() + 2);
  if (const auto t = words[0].find_first_of("Tt"); t != std::string::npos && t > 0) {
    words.insert(words.begin() + 1, words[0].substr(t + 1));
    words[0].resize(t);
  }
  const bool negative = words[0].starts_with('-');
  std::vector<std::int64_t> date;
  if (!split_numbers(std::string_view(words[0]).substr(negative ? 1 : 0), '-', date) || date.size() != 3) return {};
  const auto days = day_number(calendar_name(calendar), negative ? -date[0] : date[0], date[1], date[2]);
  if (!days) return {};
  std::int64_t start = *days * day;
  std::size_t next = 1;
  if (next < words.size() && words[next].find_first_not_of("0123456789:.Zz") == std::string::npos) {
    std::string clock = words[next++];
    if (clock.ends_with('Z') || clock.ends_with('z')) clock.pop_back();
    const auto time = time_of_day(clock);
    if (!time) return {};
    start += *time;
  }
  if (next < words.size()) {
    const auto offset = zone_of(words[next++]);
    if (!offset) return {};
    start -= *offset;
  }
  if (next != words.size()) return {};
  return cf_epoch{*unit, start};
}

}  // namespace zarrbits::text
