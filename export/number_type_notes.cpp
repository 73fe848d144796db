// SPDX-License-Identifier: BSL-1.0
//
// Numbers that `convert` notes in words, because Zarr has no type for them.
//
#include "export/type_spec.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace zarrbits::exporting {

namespace {

constexpr std::size_t max_number_bytes = 16;

// Reads a sentence piece by piece.
class note_parser {
 public:
  explicit note_parser(std::string_view text) : rest_(text) {}

  bool take(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  std::optional<std::size_t> number() {
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
    if (error != std::errc() || n > 1024) return {};
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return n;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

struct number_type {
  enum { integer, bitfield, time, floating } kind = integer;
  bool is_signed = false, vax = false, big_endian = false;
  std::size_t bits = 0, bytes = 0, offset = 0, exponent = 0, mantissa = 0;
};

std::optional<number_type> parse(const std::string& text) {
  number_type d;
  note_parser w(text);
  if (w.take("signed integer of ")) d.is_signed = true;
  else if (w.take("bitfield of ")) d.kind = number_type::bitfield;
  else if (w.take("time of ")) d.kind = number_type::time;
  else if (w.take("float of ")) d.kind = number_type::floating;
  else if (!w.take("unsigned integer of ")) return {};
  const auto take_number = [&](std::size_t& n) {
    const auto value = w.number();
    n = value.value_or(0);
    return value.has_value();
  };
  if (!take_number(d.bits) || !w.take(" bits")) return {};
  if (d.kind == number_type::floating &&
      (!w.take(" (") || !take_number(d.exponent) || !w.take(" exponent, ") || !take_number(d.mantissa) || !w.take(" mantissa)")))
    return {};
  if (!w.take(" in ") || !take_number(d.bytes) || !w.take(" byte")) return {};
  w.take("s");
  if (w.take(", bit offset ") && !take_number(d.offset)) return {};
  if (w.take(", VAX order")) d.vax = true;
  if (w.take(", big endian")) d.big_endian = true;
  const bool fits = d.bits > 0 && d.bytes > 0 && d.bytes <= max_number_bytes && d.bits + d.offset <= 8 * d.bytes;
  return w.at_end() && fits ? std::optional(d) : std::nullopt;
}

void set_bits(hid_t type, const number_type& d) {
  constexpr const char* action = "create a number type";
  if (d.bytes > H5Tget_size(type)) hdf5::check(H5Tset_size(type, d.bytes), action);
  hdf5::check(H5Tset_precision(type, d.bits), action);
  hdf5::check(H5Tset_size(type, d.bytes), action);
  hdf5::check(H5Tset_offset(type, d.offset), action);
}

hdf5::handle file_type(const number_type& d) {
  constexpr const char* action = "create a number type";
  if (d.kind == number_type::floating) {
    if (d.exponent + d.mantissa + 1 > d.bits || d.exponent == 0 || d.exponent > 30) return {};
    // x87's 80 bits: the leading bit of the mantissa is stored
    if (d.exponent == 15 && d.mantissa == 64 && d.bits == 80) {
      hdf5::handle t(H5Tcopy(H5T_NATIVE_LDOUBLE), action);
      if (H5Tget_precision(t) != 80) return {};  // of this machine
      hdf5::check(H5Tset_size(t, d.bytes), action);
      return t;
    }
    hdf5::handle t(H5Tcopy(H5T_IEEE_F64LE), action);
    if (d.bytes > 8) {
      hdf5::check(H5Tset_size(t, d.bytes), action);
      hdf5::check(H5Tset_precision(t, d.bits), action);
    }
    hdf5::check(H5Tset_fields(t, d.exponent + d.mantissa, d.mantissa, d.exponent, 0, d.mantissa), action);
    hdf5::check(H5Tset_ebias(t, (std::size_t{1} << (d.exponent - 1)) - 1), action);
    set_bits(t, d);
    if (d.vax) hdf5::check(H5Tset_order(t, H5T_ORDER_VAX), action);
    else if (d.big_endian) hdf5::check(H5Tset_order(t, H5T_ORDER_BE), action);
    return t;
  }
  if (d.kind == number_type::time) {
    if (d.bytes != 4 && d.bytes != 8) return {};
    return hdf5::handle(H5Tcopy(d.bytes == 4 ? (d.big_endian ? H5T_UNIX_D32BE : H5T_UNIX_D32LE)
                                             : (d.big_endian ? H5T_UNIX_D64BE : H5T_UNIX_D64LE)),
                        action);
  }
  hdf5::handle t(H5Tcopy(d.kind == number_type::bitfield ? H5T_STD_B64LE : d.is_signed ? H5T_STD_I64LE : H5T_STD_U64LE), action);
  set_bits(t, d);
  if (d.big_endian) hdf5::check(H5Tset_order(t, H5T_ORDER_BE), action);
  return t;
}

}  // namespace

type_spec parse_number_type(const std::string& text, const std::string& name, bool big_endian) {
  auto d = name.starts_with("complex") ? std::nullopt : parse(text);
  const bool raw = d && (d->kind == number_type::bitfield || d->kind == number_type::time);  // the bits of the integer
  if (raw) d->big_endian = big_endian && d->bytes > 1;
  hdf5::handle file = d ? file_type(*d) : hdf5::handle();
  if (!file)
    throw unsupported_in_hdf5(reason_code::unsupported_type,
                              "its numbers are described as \"" + text.substr(0, 200) + "\", which zarrbits does not write");
  if (raw) {
    type_spec t;
    t.kind = type_kind::integer;
    t.is_signed = d->kind == number_type::time;
    t.big_endian = d->big_endian;
    t.file = std::move(file);
    t.memory = hdf5::handle(H5Tcopy(t.file), "copy a type");
    t.size = d->bytes;
    return t;
  }
  type_spec t = d->kind == number_type::floating ? float_spec(name == "float32" ? 4 : 8, false)
                                                 : integer_spec(name.ends_with("8")    ? 1
                                                                : name.ends_with("16") ? 2
                                                                : name.ends_with("32") ? 4
                                                                                       : 8,
                                                                d->is_signed, false);
  t.file = std::move(file);
  t.converted = true;
  return t;
}

type_spec parse_bytes_type(const std::string& text, std::size_t length) {
  type_spec t;
  const auto d = parse(text);
  if (!d || d->bytes != length) return t;
  t.file = file_type(*d);
  if (!t.file) return t;
  t.kind = type_kind::bytes;
  t.memory = hdf5::handle(H5Tcopy(t.file), "copy a type");
  t.size = length;
  t.is_signed = d->is_signed;
  t.big_endian = d->big_endian;
  t.is_wide = d->kind == number_type::integer && d->bits == 8 * d->bytes;
  return t;
}

}  // namespace zarrbits::exporting
