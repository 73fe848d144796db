// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/sequence_check.hpp"

#include "convert/concat/variable.hpp"
#include "text/cf_calendar.hpp"
#include "text/format.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace zarrbits::conversion {

namespace {

constexpr std::size_t max_steps = 64;       // of different lengths
constexpr long double same_length = 1e-4L;  // relative: what rounding makes of one step
constexpr long double gap_factor = 1.5L;    // months differ by less
constexpr long double regular_low = 0.8L, regular_high = 1.25L;

std::string decimal(long double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6Lg", value);
  return text;
}

// `length` of a time: in microseconds.
std::string step_text(long double length, bool is_time) {
  if (!is_time) return decimal(length);
  constexpr long double second = 1e6L;
  struct unit {
    const char* name;
    long double seconds;
  };
  for (const unit& u : {unit{"day", 86400}, unit{"hour", 3600}, unit{"minute", 60}}) {
    const long double count = length / (u.seconds * second), whole = std::round(count);
    if (whole >= 1 && std::abs(count - whole) <= same_length * whole && whole < 1e15L)
      return text::pluralize(static_cast<std::uint64_t>(whole), u.name);
  }
  return decimal(length / second) + " s";
}

}  // namespace

void sequence_check::check(const std::string& path, const std::string& file, const cf_encoding& terms,
                           const std::vector<double>& stored) {
  if (stored.empty()) return;  // of a variable that only has the dimension
  path_ = path;
  is_time_ = text::parse_epoch(terms.units, terms.calendar).has_value();
  for (const double number : stored) {
    const std::optional<long double> value = meaning(terms, number);
    if (!value) continue;
    if (last_) {
      const int sign = *value > *last_ ? 1 : *value < *last_ ? -1 : 0;
      if (sign_ == 0) sign_ = sign;
      if (sign == 0 || sign != sign_) {
        throw unjoinable("\"" + path + "\" of \"" + file + "\" does not continue where that of \"" + file_ +
                             "\" ends: its values " + (sign == 0 ? "occur twice" : "change direction") +
                             "; put the files in another order (`order`), or set `allow_overlap` if this is intended",
                         {file, path});
      }
      add_step(std::abs(*value - *last_), file);
    }
    last_ = value;
    file_ = file;
  }
}

void sequence_check::add_step(long double length, const std::string& file) {
  if (is_irregular_) return;
  const auto known = std::find_if(steps_.begin(), steps_.end(),
                                  [&](const step& s) { return std::abs(s.length - length) <= same_length * length; });
  if (known != steps_.end()) {
    ++known->count;
  } else if (steps_.size() < max_steps) {
    steps_.push_back({length, 1, file_, file});
  } else {
    is_irregular_ = true;
  }
}

std::string sequence_check::gap_note() const {
  if (is_irregular_ || steps_.empty()) return {};
  std::vector<step> by_length = steps_;
  std::sort(by_length.begin(), by_length.end(), [](const step& a, const step& b) { return a.length < b.length; });
  std::uint64_t total = 0, shorter = 0;
  for (const step& s : by_length) total += s.count;
  const auto middle = std::find_if(by_length.begin(), by_length.end(), [&](const step& s) {
    shorter += s.count;
    return 2 * shorter >= total;
  });
  const long double usual = middle->length;
  const auto first_gap = std::find_if(middle, by_length.end(), [&](const step& s) { return s.length > gap_factor * usual; });
  if (first_gap == by_length.end()) return {};
  const step &shortest = by_length.front(), &longest = *std::prev(first_gap);
  if (shortest.length < regular_low * usual || longest.length > regular_high * usual) return {};
  std::uint64_t gaps = 0;
  for (auto s = first_gap; s != by_length.end(); ++s) gaps += s->count;
  if (2 * gaps >= total) return {};
  const auto text_of = [&](const step& s) { return step_text(s.length, is_time_); };
  const step& named = *std::find_if(steps_.begin(), steps_.end(), [&](const step& s) { return s.length > gap_factor * usual; });
  const std::string usual_steps =
      &shortest == &longest ? text_of(shortest) : "between " + text_of(shortest) + " and " + text_of(longest);
  const std::string where =
      named.from == named.to ? "within \"" + named.from + "\"" : "from \"" + named.from + "\" to \"" + named.to + "\"";
  return "\"" + path_ + "\" has " + text::pluralize(gaps, "gap") + ": its steps are " + usual_steps + ", but " + text_of(named) +
         " " + where + (gaps > 1 ? ", the first of them" : "") + "; if this is not intended, a file may be missing";
}

}  // namespace zarrbits::conversion
