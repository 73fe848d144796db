// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/cf_terms.hpp"

#include "text/cf_calendar.hpp"

#include <zarrbits/convert.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

namespace zarrbits::conversion {

namespace {

bool same_value(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool is(const std::optional<cf_number>& n, const cf_number& value) {
  return n && (n->integer && value.integer ? n->whole == value.whole : same_value(n->value(), value.value()));
}

bool holds(const number_kind& kind, std::int64_t n) {
  if (kind.is_signed)
    return kind.size == 8 || (n >= -(std::int64_t{1} << (8 * kind.size - 1)) && n < std::int64_t{1} << (8 * kind.size - 1));
  return n >= 0 && (kind.size == 8 || n < std::int64_t{1} << (8 * kind.size));
}

// True if `to` can hold every number of `from`.
bool contains(const number_kind& to, const number_kind& from) {
  if (to == from) return true;
  if (!to.integer) return from.integer ? from.size <= to.size / 2 : from.size <= to.size;
  if (!from.integer) return false;
  if (to.is_signed == from.is_signed) return from.size <= to.size;
  return to.is_signed && from.size < to.size;
}

// The type to which xarray unpacks.
number_kind unpacked_kind(const cf_terms& t) {
  const auto is_float = [](const std::optional<cf_number>& n) { return n && !n->integer; };
  const number_kind single{false, true, 4}, twice{false, true, 8};
  if (t.scale || t.offset) {
    if (is_float(t.scale) && is_float(t.offset) && t.scale->size == t.offset->size)
      return t.kind.integer && t.kind.size == 4 ? twice : number_kind{false, true, t.scale->size};
    if (t.offset) return twice;
    if (is_float(t.scale)) return {false, true, t.scale->size};
  }
  if (!t.kind.integer) return t.kind.size <= 4 ? single : twice;
  return t.kind.size <= 2 ? single : twice;
}

// The difference of stored integers with equal meaning; empty if there is no such constant.
std::optional<std::int64_t> shift_between(const cf_terms& from, const cf_terms& to) {
  const double scale = to.scale ? to.scale->value() : 1, from_scale = from.scale ? from.scale->value() : 1;
  const double offset = to.offset ? to.offset->value() : 0, from_offset = from.offset ? from.offset->value() : 0;
  if (scale != from_scale || scale == 0) return {};
  const double steps = std::round((from_offset - offset) / scale);
  if (!(std::abs(steps) < 1e15) || offset + steps * scale != from_offset) return {};
  return static_cast<std::int64_t>(steps);
}

bool same_packing(const cf_terms& a, const cf_terms& b) {
  return (a.scale ? a.scale->value() : 1) == (b.scale ? b.scale->value() : 1) &&
         (a.offset ? a.offset->value() : 0) == (b.offset ? b.offset->value() : 0);
}

bool in_another_epoch(const cf_terms& a, const cf_terms& b) {
  const auto here = text::parse_epoch(a.units, a.calendar), there = text::parse_epoch(b.units, b.calendar);
  return here && there && (here->unit != there->unit || here->start != there->start);
}

// True if no integer of `from` is a time that integers of `to` can tell: one file a time step, each with an epoch of its own.
bool is_never_whole(const cf_terms& from, const cf_terms& to) {
  if (!from.kind.integer || !to.kind.integer) return false;
  const auto here = text::parse_epoch(from.units, from.calendar), there = text::parse_epoch(to.units, to.calendar);
  return here && there && (here->start - there->start) % std::gcd(here->unit, there->unit) != 0;
}

// Converts values, as integers or as floats.
class cf_change final : public value_change {
 public:
  cf_change(const cf_terms& from, const agreement& to) : from_(from), to_(to) {
    const auto here = text::parse_epoch(from.units, from.calendar), there = text::parse_epoch(to.terms.units, to.terms.calendar);
    if (here && there && (from.units != to.terms.units || from.calendar != to.terms.calendar)) {
      earliest_ = text::same_from(from.calendar, to.terms.calendar).value_or(std::numeric_limits<std::int64_t>::max());
      moved_ = true;
      here_ = *here;
      there_ = *there;
    } else if (!to.unpacked) {
      shift_ = shift_between(from, to.terms).value_or(0);
    }
  }

  hid_t from() const override { return from_.kind.integer ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE; }
  hid_t to() const override { return to_.terms.kind.integer ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE; }

  void apply(const std::byte* before, std::byte* after, std::size_t n) const override {
    for (std::size_t i = 0; i < n; ++i) {
      cf_number value;
      value.integer = from_.kind.integer;
      std::memcpy(value.integer ? static_cast<void*>(&value.whole) : &value.real, before + 8 * i, 8);
      if (to_.terms.kind.integer) {
        const std::int64_t made = whole(value);
        std::memcpy(after + 8 * i, &made, 8);
      } else {
        const double made = real(value);
        std::memcpy(after + 8 * i, &made, 8);
      }
    }
  }

 private:
  bool is_missing(const cf_number& v) const { return is(from_.fill, v) || is(from_.missing, v); }

  // The marker of a missing value in the array: the same one as in the file, if it has both.
  const cf_number& missing_for(const cf_number& v) const {
    const cf_terms& t = to_.terms;
    return !t.fill || (is(from_.missing, v) && !is(from_.fill, v) && t.missing) ? *t.missing : *t.fill;
  }

  [[noreturn]] void fail(const std::string& value, const std::string& why) const {
    throw no_counterpart("its value " + value + " " + why + " in the encoding of the " + (to_.grows ? "store" : "first file"));
  }

  std::int64_t whole(const cf_number& v) const {
    if (is_missing(v)) return missing_for(v).whole;
    std::int64_t made = 0;
    const auto fail = [&](const char* why) { this->fail(std::to_string(v.whole), why); };
    if (moved_) {
      std::int64_t micro = 0;
      if (__builtin_mul_overflow(v.whole, here_.unit, &micro) || __builtin_add_overflow(micro, here_.start, &micro) ||
          micro < earliest_ || __builtin_sub_overflow(micro, there_.start, &micro))
        fail(micro < earliest_ ? "is a time before 1582-10-15, which has a different date" : "is too large");
      if (micro % there_.unit != 0) fail("is not a whole number of units");
      made = micro / there_.unit;
    } else if (__builtin_add_overflow(v.whole, shift_, &made)) {
      fail("is too large");
    }
    if (!holds(to_.terms.kind, made)) fail("does not fit");
    cf_number result;
    result.whole = made;
    if (is(to_.terms.fill, result) || is(to_.terms.missing, result)) fail("means a missing value");
    return made;
  }

  double real(const cf_number& v) const {
    const bool none = is_missing(v);
    if (to_.unpacked) return none || std::isnan(v.value()) ? std::numeric_limits<double>::quiet_NaN() : unpacked(v);
    if (none) return missing_for(v).value();
    const double made = moved_ ? moved(v.value()) : v.value() + static_cast<double>(shift_);
    cf_number result;
    result.integer = false;
    result.real = made;
    if (is(to_.terms.fill, result) || is(to_.terms.missing, result)) fail(text_of(v.value()), "means a missing value");
    return made;
  }

  static std::string text_of(double v) { return text::json_text(text::json(v)); }

  // A time in the other epoch: to the microsecond, or not at all.
  double moved(double v) const {
    if (!std::isfinite(v)) return v;
    const long double instant = static_cast<long double>(v) * static_cast<long double>(here_.unit);
    if (earliest_ > std::numeric_limits<std::int64_t>::min() &&
        instant + static_cast<long double>(here_.start) < static_cast<long double>(earliest_))
      fail(text_of(v), "is a time before 1582-10-15, which has a different date");
    const long double there = instant + static_cast<long double>(here_.start - there_.start);
    const auto unit = static_cast<long double>(there_.unit);
    const bool single = to_.terms.kind.size == 4;
    auto made = static_cast<double>(there / unit);
    if (single) made = static_cast<double>(static_cast<float>(made));
    if (!(std::abs(static_cast<long double>(made) * unit - there) < 0.5L))
      fail(text_of(v),
           std::string("is a time that a float of ") + (single ? "32" : "64") + " bits cannot hold to the microsecond");
    return made;
  }

  // As xarray unpacks, in floats of the same size.
  double unpacked(const cf_number& v) const {
    if (unpacked_kind(from_).size == 4) {
      auto made = static_cast<float>(v.value());
      if (from_.scale) made *= static_cast<float>(from_.scale->value());
      if (from_.offset) made += static_cast<float>(from_.offset->value());
      return made;
    }
    double made = v.value();
    if (from_.scale) made *= from_.scale->value();
    if (from_.offset) made += from_.offset->value();
    return made;
  }

  cf_terms from_;
  agreement to_;
  std::int64_t shift_ = 0;
  bool moved_ = false;
  std::int64_t earliest_ = std::numeric_limits<std::int64_t>::min();  // from here on both calendars agree; microseconds
  text::cf_epoch here_, there_;
};

// The smallest type that holds all numbers of both types.
number_kind common_kind(const number_kind& a, const number_kind& b) {
  if (contains(a, b)) return a;
  if (contains(b, a)) return b;
  for (const std::size_t size : {2U, 4U, 8U}) {
    const number_kind k{a.integer && b.integer, true, size};
    if ((k.integer || size >= 4) && contains(k, a) && contains(k, b)) return k;
  }
  return {};
}

}  // namespace

bool cf_number::operator==(const cf_number& other) const {
  return integer == other.integer && size == other.size && (integer ? whole == other.whole : same_value(real, other.real));
}

agreement agree(const std::vector<cf_terms>& all, const std::vector<std::string>& who, const std::string& path, bool grows) {
  const cf_terms& first = all.front();
  agreement way{first, false, grows, ""};
  bool unpack = false;
  std::size_t moved = 0, fractional = 0;  // the first file of another epoch, and of one that needs fractions of the units
  for (std::size_t i = 1; i < all.size(); ++i) {
    const cf_terms& t = all[i];
    const auto refuse = [&](const std::string& what) {
      throw zarrbits::error(errc::not_joinable,
                            "\"" + path + "\" of \"" + who[0] + "\" and of \"" + who[i] + "\" cannot be joined: " + what,
                            {who[i], path});
    };
    if (t.kind.size == 0 || first.kind.size == 0) {
      if (t.kind != first.kind) refuse("their datatypes differ");
      continue;
    }
    if (t == first) continue;
    for (const cf_terms* each : {&t, &first}) {
      if (each->unread.empty()) continue;
      refuse("their \"" + each->unread.begin()->first +
             "\" is not a single number that can be read exactly, and they differ in it or in another of these attributes");
    }
    const bool dates_agree =
        t.calendar == first.calendar || (text::same_from(t.calendar, first.calendar) && text::parse_epoch(t.units, t.calendar) &&
                                         text::parse_epoch(first.units, first.calendar) && !t.scale && !t.offset);
    if (!dates_agree)
      refuse("their calendars are \"" + first.calendar + "\" and \"" + t.calendar + "\"; convert the files separately");
    if (t.units != first.units) {
      if (!text::parse_epoch(t.units, t.calendar) || !text::parse_epoch(first.units, first.calendar))
        refuse("their units are \"" + first.units + "\" and \"" + t.units + "\"; convert the files separately");
      if (t.scale || t.offset || first.scale || first.offset) refuse("they are packed times of different epochs");
    }
    if (moved == 0 && in_another_epoch(t, first)) moved = i;
    if (is_never_whole(t, first)) {
      if (grows)
        refuse("its times, in \"" + t.units + "\", are not whole numbers of \"" + first.units +
               "\", which is what the store has; make the store again from all files with `concat`");
      if (fractional == 0) fractional = i;
    }
    if (t.reinterpreted || first.reinterpreted) refuse("they differ in their packing, and have the attribute \"_Unsigned\"");
    const bool differs = !same_packing(t, first) || t.fill != first.fill || t.missing != first.missing || t.kind != first.kind;
    if (!differs) continue;
    const bool wide = (t.kind.integer && !t.kind.is_signed && t.kind.size == 8) ||
                      (first.kind.integer && !first.kind.is_signed && first.kind.size == 8);
    if (wide) refuse("they are uint64, and differ in type, packing or missing values");
    const bool has_none = (t.fill || t.missing) && !(first.fill || first.missing);
    const bool packed = !same_packing(t, first) && !(t.kind.integer && first.kind.integer && shift_between(t, first));
    if (packed || has_none) {
      unpack = true;
      if (way.why.empty())
        way.why = packed ? "its packing differs in \"" + who[i] + "\""
                         : "\"" + who[i] + "\" has missing values, but the first file has none";
    }
    const number_kind common = common_kind(way.terms.kind, t.kind);
    if (common.size == 0 && !unpack) refuse("no type can hold the values of both");
    if (common.size != 0) way.terms.kind = common;
  }
  if (!unpack && fractional > 0) {
    way.terms.kind = {false, true, 8};
    way.why = "its times have an epoch in \"" + who[fractional] + "\" that is not a whole number of units from the first file's";
    return way;
  }
  if (!unpack) {
    if (way.terms.kind != first.kind) way.why = "its type differs between the files";
    if (moved > 0 && !grows && way.terms.kind == number_kind{false, true, 4}) {
      way.terms.kind.size = 8;
      way.why =
          "its times have a different epoch in \"" + who[moved] + "\", in which floats of 32 bits may not hold them exactly";
    }
    return way;
  }
  std::size_t size = 4;
  for (const cf_terms& t : all) {
    size = std::max(size, unpacked_kind(t).size);
    if (t.units != first.units)
      throw zarrbits::error(errc::not_joinable, "\"" + path + "\" cannot be joined: its packing and its epoch differ",
                            {who[0], path});
  }
  way.unpacked = true;
  way.terms.kind = {false, true, size};
  way.terms.scale = way.terms.offset = way.terms.fill = way.terms.missing = std::nullopt;
  return way;
}

std::shared_ptr<const value_change> change_of(const cf_terms& from, const agreement& to) {
  if (from.kind.size == 0) return {};
  const bool as_it_is = !to.unpacked && same_packing(from, to.terms) && from.units == to.terms.units &&
                        from.calendar == to.terms.calendar && from.fill == to.terms.fill && from.missing == to.terms.missing;
  return as_it_is ? nullptr : std::make_shared<const cf_change>(from, to);
}

hid_t native_type(const number_kind& k) {
  if (!k.integer) return k.size == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  switch (k.size) {
    case 1: return k.is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
    case 2: return k.is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16;
    case 4: return k.is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32;
    default: return k.is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
  }
}

std::optional<long double> meaning(const cf_terms& terms, double stored) {
  cf_number number;
  number.integer = false;
  number.real = stored;
  if (std::isnan(stored) || is(terms.fill, number) || is(terms.missing, number)) return {};
  long double value = stored;
  if (terms.reinterpreted && terms.kind.integer) {
    const long double all = std::ldexp(1.0L, static_cast<int>(8 * terms.kind.size));
    if (terms.kind.is_signed && value < 0) value += all;
    if (!terms.kind.is_signed && value >= all / 2) value -= all;
  }
  if (terms.scale) value *= static_cast<long double>(terms.scale->value());
  if (terms.offset) value += static_cast<long double>(terms.offset->value());
  const auto epoch = text::parse_epoch(terms.units, terms.calendar);
  return epoch ? value * static_cast<long double>(epoch->unit) + static_cast<long double>(epoch->start) : value;
}

std::string lacks_packing(const cf_terms& terms) {
  for (const char* name : {"scale_factor", "add_offset"}) {
    if (terms.unread.contains(name)) return name;
  }
  return "";
}

}  // namespace zarrbits::conversion
