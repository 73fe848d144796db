// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/cf_encoding.hpp"

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

bool equals(const std::optional<cf_number>& n, const cf_number& value) {
  return n &&
         (n->is_integer && value.is_integer ? n->integer_value == value.integer_value : same_value(n->value(), value.value()));
}

bool holds(const number_kind& kind, std::int64_t n) {
  if (kind.is_signed)
    return kind.size == 8 || (n >= -(std::int64_t{1} << (8 * kind.size - 1)) && n < std::int64_t{1} << (8 * kind.size - 1));
  return n >= 0 && (kind.size == 8 || n < std::int64_t{1} << (8 * kind.size));
}

// True if `to` can hold every number of `from`.
bool can_hold(const number_kind& to, const number_kind& from) {
  if (to == from) return true;
  if (!to.is_integer) return from.is_integer ? from.size <= to.size / 2 : from.size <= to.size;
  if (!from.is_integer) return false;
  if (to.is_signed == from.is_signed) return from.size <= to.size;
  return to.is_signed && from.size < to.size;
}

// The type to which xarray unpacks.
number_kind unpacked_kind(const cf_encoding& t) {
  const auto is_float = [](const std::optional<cf_number>& n) { return n && !n->is_integer; };
  const number_kind single{false, true, 4}, twice{false, true, 8};
  if (t.scale || t.offset) {
    if (is_float(t.scale) && is_float(t.offset) && t.scale->size == t.offset->size)
      return t.kind.is_integer && t.kind.size == 4 ? twice : number_kind{false, true, t.scale->size};
    if (t.offset) return twice;
    if (is_float(t.scale)) return {false, true, t.scale->size};
  }
  if (!t.kind.is_integer) return t.kind.size <= 4 ? single : twice;
  return t.kind.size <= 2 ? single : twice;
}

// The difference of stored integers with equal meaning; empty if there is no such constant.
std::optional<std::int64_t> shift_between(const cf_encoding& from, const cf_encoding& to) {
  const double scale = to.scale ? to.scale->value() : 1, from_scale = from.scale ? from.scale->value() : 1;
  const double offset = to.offset ? to.offset->value() : 0, from_offset = from.offset ? from.offset->value() : 0;
  if (scale != from_scale || scale == 0) return {};
  const double steps = std::round((from_offset - offset) / scale);
  if (!(std::abs(steps) < 1e15) || offset + steps * scale != from_offset) return {};
  return static_cast<std::int64_t>(steps);
}

bool same_packing(const cf_encoding& a, const cf_encoding& b) {
  return (a.scale ? a.scale->value() : 1) == (b.scale ? b.scale->value() : 1) &&
         (a.offset ? a.offset->value() : 0) == (b.offset ? b.offset->value() : 0);
}

bool in_another_epoch(const cf_encoding& a, const cf_encoding& b) {
  const auto first_epoch = text::parse_epoch(a.units, a.calendar), second_epoch = text::parse_epoch(b.units, b.calendar);
  return first_epoch && second_epoch && (first_epoch->unit != second_epoch->unit || first_epoch->start != second_epoch->start);
}

// True if no integer of `from` is a time that integers of `to` can tell: one file a time step, each with an epoch of its own.
bool is_never_integral(const cf_encoding& from, const cf_encoding& to) {
  if (!from.kind.is_integer || !to.kind.is_integer) return false;
  const auto from_epoch = text::parse_epoch(from.units, from.calendar), to_epoch = text::parse_epoch(to.units, to.calendar);
  return from_epoch && to_epoch && (from_epoch->start - to_epoch->start) % std::gcd(from_epoch->unit, to_epoch->unit) != 0;
}

// Converts values, as integers or as floats.
class cf_change final : public value_change {
 public:
  cf_change(const cf_encoding& source, const reconciled_encoding& target) : source_(source), target_(target) {
    const auto source_epoch = text::parse_epoch(source.units, source.calendar),
               target_epoch = text::parse_epoch(target.encoding.units, target.encoding.calendar);
    if (source_epoch && target_epoch && (source.units != target.encoding.units || source.calendar != target.encoding.calendar)) {
      earliest_ = text::calendars_agree_from(source.calendar, target.encoding.calendar)
                      .value_or(std::numeric_limits<std::int64_t>::max());
      changes_epoch_ = true;
      source_epoch_ = *source_epoch;
      target_epoch_ = *target_epoch;
    } else if (!target.unpacked) {
      shift_ = shift_between(source, target.encoding).value_or(0);
    }
  }

  hid_t source_type() const override { return source_.kind.is_integer ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE; }
  hid_t target_type() const override { return target_.encoding.kind.is_integer ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE; }

  void apply(const std::byte* input, std::byte* output, std::size_t n) const override {
    for (std::size_t i = 0; i < n; ++i) {
      cf_number value;
      value.is_integer = source_.kind.is_integer;
      std::memcpy(value.is_integer ? static_cast<void*>(&value.integer_value) : &value.real, input + 8 * i, 8);
      if (target_.encoding.kind.is_integer) {
        const std::int64_t converted = convert_integer(value);
        std::memcpy(output + 8 * i, &converted, 8);
      } else {
        const double converted = convert_real(value);
        std::memcpy(output + 8 * i, &converted, 8);
      }
    }
  }

 private:
  bool is_missing(const cf_number& v) const { return equals(source_.fill, v) || equals(source_.missing, v); }

  // The marker of a missing value in the array: the same one as in the file, if it has both.
  const cf_number& missing_for(const cf_number& v) const {
    const cf_encoding& t = target_.encoding;
    return !t.fill || (equals(source_.missing, v) && !equals(source_.fill, v) && t.missing) ? *t.missing : *t.fill;
  }

  [[noreturn]] void fail(const std::string& value, const std::string& reason) const {
    throw unrepresentable_value("its value " + value + " " + reason + " in the encoding of the " +
                                (target_.grows ? "store" : "first file"));
  }

  std::int64_t convert_integer(const cf_number& v) const {
    if (is_missing(v)) return missing_for(v).integer_value;
    std::int64_t converted = 0;
    const auto fail = [&](const char* reason) { this->fail(std::to_string(v.integer_value), reason); };
    if (changes_epoch_) {
      std::int64_t micro = 0;
      if (__builtin_mul_overflow(v.integer_value, source_epoch_.unit, &micro) ||
          __builtin_add_overflow(micro, source_epoch_.start, &micro) || micro < earliest_ ||
          __builtin_sub_overflow(micro, target_epoch_.start, &micro))
        fail(micro < earliest_ ? "is a time before 1582-10-15, which has a different date" : "is too large");
      if (micro % target_epoch_.unit != 0) fail("is not a whole number of units");
      converted = micro / target_epoch_.unit;
    } else if (__builtin_add_overflow(v.integer_value, shift_, &converted)) {
      fail("is too large");
    }
    if (!holds(target_.encoding.kind, converted)) fail("does not fit");
    cf_number result;
    result.integer_value = converted;
    if (equals(target_.encoding.fill, result) || equals(target_.encoding.missing, result)) fail("means a missing value");
    return converted;
  }

  double convert_real(const cf_number& v) const {
    const bool is_absent = is_missing(v);
    if (target_.unpacked) return is_absent || std::isnan(v.value()) ? std::numeric_limits<double>::quiet_NaN() : unpack(v);
    if (is_absent) return missing_for(v).value();
    const double converted = changes_epoch_ ? to_target_epoch(v.value()) : v.value() + static_cast<double>(shift_);
    cf_number result;
    result.is_integer = false;
    result.real = converted;
    if (equals(target_.encoding.fill, result) || equals(target_.encoding.missing, result))
      fail(text_of(v.value()), "means a missing value");
    return converted;
  }

  static std::string text_of(double v) { return text::json_text(text::json(v)); }

  // A time in the other epoch: to the microsecond, or not at all.
  double to_target_epoch(double v) const {
    if (!std::isfinite(v)) return v;
    const long double instant = static_cast<long double>(v) * static_cast<long double>(source_epoch_.unit);
    if (earliest_ > std::numeric_limits<std::int64_t>::min() &&
        instant + static_cast<long double>(source_epoch_.start) < static_cast<long double>(earliest_))
      fail(text_of(v), "is a time before 1582-10-15, which has a different date");
    const long double shifted = instant + static_cast<long double>(source_epoch_.start - target_epoch_.start);
    const auto unit = static_cast<long double>(target_epoch_.unit);
    const bool single = target_.encoding.kind.size == 4;
    auto converted = static_cast<double>(shifted / unit);
    if (single) converted = static_cast<double>(static_cast<float>(converted));
    if (!(std::abs(static_cast<long double>(converted) * unit - shifted) < 0.5L))
      fail(text_of(v),
           std::string("is a time that a float of ") + (single ? "32" : "64") + " bits cannot hold to the microsecond");
    return converted;
  }

  // As xarray unpacks, in floats of the same size.
  double unpack(const cf_number& v) const {
    if (unpacked_kind(source_).size == 4) {
      auto single_value = static_cast<float>(v.value());
      if (source_.scale) single_value *= static_cast<float>(source_.scale->value());
      if (source_.offset) single_value += static_cast<float>(source_.offset->value());
      return single_value;
    }
    double result = v.value();
    if (source_.scale) result *= source_.scale->value();
    if (source_.offset) result += source_.offset->value();
    return result;
  }

  cf_encoding source_;
  reconciled_encoding target_;
  std::int64_t shift_ = 0;
  bool changes_epoch_ = false;
  std::int64_t earliest_ = std::numeric_limits<std::int64_t>::min();  // from here on both calendars agree; microseconds
  text::cf_epoch source_epoch_, target_epoch_;
};

// The smallest type that holds all numbers of both types.
number_kind common_kind(const number_kind& a, const number_kind& b) {
  if (can_hold(a, b)) return a;
  if (can_hold(b, a)) return b;
  for (const std::size_t size : {2U, 4U, 8U}) {
    const number_kind k{a.is_integer && b.is_integer, true, size};
    if ((k.is_integer || size >= 4) && can_hold(k, a) && can_hold(k, b)) return k;
  }
  return {};
}

}  // namespace

bool cf_number::operator==(const cf_number& other) const {
  return is_integer == other.is_integer && size == other.size &&
         (is_integer ? integer_value == other.integer_value : same_value(real, other.real));
}

reconciled_encoding reconcile(const std::vector<cf_encoding>& encodings, const std::vector<std::string>& file_names,
                              const std::string& path, bool grows) {
  const cf_encoding& first = encodings.front();
  reconciled_encoding result{first, false, grows, ""};
  bool unpack = false;
  std::size_t moved = 0, fractional = 0;  // the first file of another epoch, and of one that needs fractions of the units
  for (std::size_t i = 1; i < encodings.size(); ++i) {
    const cf_encoding& t = encodings[i];
    const auto refuse = [&](const std::string& reason) {
      throw zarrbits::error(
          errc::not_joinable,
          "\"" + path + "\" of \"" + file_names[0] + "\" and of \"" + file_names[i] + "\" cannot be joined: " + reason,
          {file_names[i], path});
    };
    if (t.kind.size == 0 || first.kind.size == 0) {
      if (t.kind != first.kind) refuse("their datatypes differ");
      continue;
    }
    if (t == first) continue;
    for (const cf_encoding* encoding : {&t, &first}) {
      if (encoding->unread.empty()) continue;
      refuse("their \"" + encoding->unread.begin()->first +
             "\" is not a single number that can be read exactly, and they differ in it or in another of these attributes");
    }
    const bool dates_agree = t.calendar == first.calendar ||
                             (text::calendars_agree_from(t.calendar, first.calendar) && text::parse_epoch(t.units, t.calendar) &&
                              text::parse_epoch(first.units, first.calendar) && !t.scale && !t.offset);
    if (!dates_agree)
      refuse("their calendars are \"" + first.calendar + "\" and \"" + t.calendar + "\"; convert the files separately");
    if (t.units != first.units) {
      if (!text::parse_epoch(t.units, t.calendar) || !text::parse_epoch(first.units, first.calendar))
        refuse("their units are \"" + first.units + "\" and \"" + t.units + "\"; convert the files separately");
      if (t.scale || t.offset || first.scale || first.offset) refuse("they are packed times of different epochs");
    }
    if (moved == 0 && in_another_epoch(t, first)) moved = i;
    if (is_never_integral(t, first)) {
      if (grows)
        refuse("its times, in \"" + t.units + "\", are not whole numbers of \"" + first.units +
               "\", which is what the store has; make the store again from all files with `concat`");
      if (fractional == 0) fractional = i;
    }
    if (t.reinterpreted || first.reinterpreted) refuse("they differ in their packing, and have the attribute \"_Unsigned\"");
    const bool differs = !same_packing(t, first) || t.fill != first.fill || t.missing != first.missing || t.kind != first.kind;
    if (!differs) continue;
    const bool wide = (t.kind.is_integer && !t.kind.is_signed && t.kind.size == 8) ||
                      (first.kind.is_integer && !first.kind.is_signed && first.kind.size == 8);
    if (wide) refuse("they are uint64, and differ in type, packing or missing values");
    const bool has_none = (t.fill || t.missing) && !(first.fill || first.missing);
    const bool packed = !same_packing(t, first) && !(t.kind.is_integer && first.kind.is_integer && shift_between(t, first));
    if (packed || has_none) {
      unpack = true;
      if (result.reason.empty())
        result.reason = packed ? "its packing differs in \"" + file_names[i] + "\""
                               : "\"" + file_names[i] + "\" has missing values, but the first file has none";
    }
    const number_kind common = common_kind(result.encoding.kind, t.kind);
    if (common.size == 0 && !unpack) refuse("no type can hold the values of both");
    if (common.size != 0) result.encoding.kind = common;
  }
  if (!unpack && fractional > 0) {
    result.encoding.kind = {false, true, 8};
    result.reason =
        "its times have an epoch in \"" + file_names[fractional] + "\" that is not a whole number of units from the first file's";
    return result;
  }
  if (!unpack) {
    if (result.encoding.kind != first.kind) result.reason = "its type differs between the files";
    if (moved > 0 && !grows && result.encoding.kind == number_kind{false, true, 4}) {
      result.encoding.kind.size = 8;
      result.reason = "its times have a different epoch in \"" + file_names[moved] +
                      "\", in which floats of 32 bits may not hold them exactly";
    }
    return result;
  }
  std::size_t size = 4;
  for (const cf_encoding& t : encodings) {
    size = std::max(size, unpacked_kind(t).size);
    if (t.units != first.units)
      throw zarrbits::error(errc::not_joinable, "\"" + path + "\" cannot be joined: its packing and its epoch differ",
                            {file_names[0], path});
  }
  result.unpacked = true;
  result.encoding.kind = {false, true, size};
  result.encoding.scale = result.encoding.offset = result.encoding.fill = result.encoding.missing = std::nullopt;
  return result;
}

std::shared_ptr<const value_change> change_of(const cf_encoding& from, const reconciled_encoding& to) {
  if (from.kind.size == 0) return {};
  const bool as_it_is = !to.unpacked && same_packing(from, to.encoding) && from.units == to.encoding.units &&
                        from.calendar == to.encoding.calendar && from.fill == to.encoding.fill &&
                        from.missing == to.encoding.missing;
  return as_it_is ? nullptr : std::make_shared<const cf_change>(from, to);
}

hid_t native_type(const number_kind& k) {
  if (!k.is_integer) return k.size == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  switch (k.size) {
    case 1: return k.is_signed ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
    case 2: return k.is_signed ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16;
    case 4: return k.is_signed ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32;
    default: return k.is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
  }
}

std::optional<long double> meaning(const cf_encoding& terms, double stored) {
  cf_number number;
  number.is_integer = false;
  number.real = stored;
  if (std::isnan(stored) || equals(terms.fill, number) || equals(terms.missing, number)) return {};
  long double value = stored;
  if (terms.reinterpreted && terms.kind.is_integer) {
    const long double modulus = std::ldexp(1.0L, static_cast<int>(8 * terms.kind.size));
    if (terms.kind.is_signed && value < 0) value += modulus;
    if (!terms.kind.is_signed && value >= modulus / 2) value -= modulus;
  }
  if (terms.scale) value *= static_cast<long double>(terms.scale->value());
  if (terms.offset) value += static_cast<long double>(terms.offset->value());
  const auto epoch = text::parse_epoch(terms.units, terms.calendar);
  return epoch ? value * static_cast<long double>(epoch->unit) + static_cast<long double>(epoch->start) : value;
}

std::string unreadable_packing_attribute(const cf_encoding& terms) {
  for (const char* name : {"scale_factor", "add_offset"}) {
    if (terms.unread.contains(name)) return name;
  }
  return "";
}

}  // namespace zarrbits::conversion
