// SPDX-License-Identifier: BSL-1.0
//
// Prints each month of the years 1 to 3000: calendar, year, month, days until its first day from that of 1970, and its length,
// by both algorithms.
//
#include "text/cf_calendar.hpp"
#include "verify/cf_time.hpp"

#include <cstdint>
#include <cstdio>
#include <string>

using namespace zarrbits;

int main() {
  constexpr std::int64_t day = std::int64_t{86'400} * 1'000'000;
  for (const char* const calendar : {"standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"}) {
    const std::int64_t zero = *verification::days_to(calendar, 1970, 1, 1);
    const std::int64_t other_zero = text::parse_epoch("days since 1970-01-01", calendar)->start;
    for (int year = 1; year <= 3000; ++year) {
      for (int month = 1; month <= 12; ++month) {
        std::int64_t first = 0, last = 0, other_first = 0, other_last = 0;
        int days = 0, other_days = 0;
        for (int d = 1; d <= 31; ++d) {
          if (const auto number = verification::days_to(calendar, year, month, d)) {
            if (days++ == 0) first = *number - zero;
            last = *number - zero;
          }
          const std::string date = std::to_string(year) + "-" + std::to_string(month) + "-" + std::to_string(d);
          if (const auto scale = text::parse_epoch("days since " + date, calendar)) {
            if (other_days++ == 0) other_first = (scale->start - other_zero) / day;
            other_last = (scale->start - other_zero) / day;
          }
        }
        std::printf("%s %d %d %lld %lld %d %lld %lld %d\n", calendar, year, month, static_cast<long long>(first),
                    static_cast<long long>(last), days, static_cast<long long>(other_first), static_cast<long long>(other_last),
                    other_days);
      }
    }
  }
}
