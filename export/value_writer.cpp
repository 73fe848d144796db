// SPDX-License-Identifier: BSL-1.0
#include "export/value_writer.hpp"

#include "text/base64.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace zarrbits::exporting {

using zarr::zarr_kind;
using zarr::zarr_type;

namespace {

constexpr bool native_big = std::endian::native == std::endian::big;

[[noreturn]] void misfit(const text::json& value, const char* type) {
  std::string text = text::json_text(value);
  if (text.size() > 80) text = text.substr(0, 80) + "...";
  throw unsupported_in_hdf5(reason_code::damaged, text + " is not a value of its type, " + type);
}

// `bits` as a number of `size` bytes.
void write_bits(std::uint64_t bits, std::size_t size, bool big, std::byte* out) {
  for (std::size_t i = 0; i < size; ++i) out[big ? size - 1 - i : i] = static_cast<std::byte>(bits >> (8 * i));
}

void write_integer(const type_spec& t, const text::json& value, std::byte* out) {
  const auto bits = static_cast<unsigned>(8 * t.size);
  if (value.is_boolean()) return write_bits(value.get<bool>() ? 1 : 0, t.size, t.big_endian, out);
  if (!value.is_number_integer()) misfit(value, "an integer");
  if (value.is_number_unsigned()) {
    const auto v = value.get<std::uint64_t>();
    const unsigned value_bits = bits - (t.is_signed ? 1 : 0);
    if (value_bits < 64 && v >> value_bits != 0) misfit(value, "an integer");
    return write_bits(v, t.size, t.big_endian, out);
  }
  const auto v = value.get<std::int64_t>();
  if (v < 0 && (!t.is_signed || (bits < 64 && v < -(std::int64_t{1} << (bits - 1))))) misfit(value, "an integer");
  write_bits(static_cast<std::uint64_t>(v), t.size, t.big_endian, out);
}

std::uint64_t half_bits(double v) {
  const std::uint64_t sign = std::uint64_t{std::signbit(v)} << 15;
  if (std::isnan(v)) return sign | 0x7E00;
  const double magnitude = std::fabs(v);
  int exponent = magnitude == 0 ? -14 : std::isinf(v) ? 16 : std::max(std::ilogb(magnitude), -14);
  if (exponent > 15) return sign | 0x7C00;
  // an integer in units of the last place; a carry moves into the exponent by itself
  const auto units = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return sign | (units + (static_cast<std::uint64_t>(exponent + 14) << 10));
}

std::uint64_t float_bits(double v, std::size_t size) {
  if (size == 8) return std::bit_cast<std::uint64_t>(v);
  if (size == 4) return std::bit_cast<std::uint32_t>(static_cast<float>(v));
  return half_bits(v);
}

// Numbers, and the words of values_json.hpp: "NaN", "Infinity", "-Infinity", and the bits of a NaN in hex.
std::uint64_t float_bits(const text::json& value, std::size_t size) {
  if (value.is_number()) return float_bits(value.get<double>(), size);
  if (value.is_boolean()) return float_bits(value.get<bool>() ? 1.0 : 0.0, size);
  if (!value.is_string()) misfit(value, "a float");
  const auto& word = value.get_ref<const std::string&>();
  if (word == "NaN") return float_bits(std::numeric_limits<double>::quiet_NaN(), size);
  if (word == "Infinity") return float_bits(std::numeric_limits<double>::infinity(), size);
  if (word == "-Infinity") return float_bits(-std::numeric_limits<double>::infinity(), size);
  if (!word.starts_with("0x") || word.size() != 2 + 2 * size) misfit(value, "a float");
  std::uint64_t bits = 0;
  for (const char c : word.substr(2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) misfit(value, "a float");
    bits = bits << 4 | static_cast<unsigned>(digit);
  }
  return bits;
}

// The bytes of {"base64": "..."}.
std::optional<std::string> base64_bytes(const text::json& value) {
  if (!value.is_object() || value.size() != 1 || !value.contains("base64") || !value["base64"].is_string()) return {};
  const auto bytes = text::decode_base64(value["base64"].get_ref<const std::string&>());
  if (!bytes) return {};
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

// An integer of any length from its decimal digits.
void write_digits(const type_spec& t, const text::json& value, std::byte* out) {
  if (!value.is_string()) misfit(value, "an integer");
  std::string_view digits = value.get_ref<const std::string&>();
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  if (digits.empty() || digits.size() > 3 * t.size || digits.find_first_not_of("0123456789") != std::string_view::npos)
    misfit(value, "an integer");
  std::vector<unsigned> little(t.size, 0);
  for (const char c : digits) {
    unsigned carry = static_cast<unsigned>(c - '0');
    for (unsigned& b : little) {
      carry += 10 * b;
      b = carry & 255;
      carry >>= 8;
    }
    if (carry != 0) misfit(value, "an integer");
  }
  if (negative) {
    unsigned carry = 1;
    for (unsigned& b : little) {
      carry += 255 - b;
      b = carry & 255;
      carry >>= 8;
    }
  }
  for (std::size_t i = 0; i < t.size; ++i) out[t.big_endian ? t.size - 1 - i : i] = static_cast<std::byte>(little[i]);
}

void write_fixed_text(const type_spec& t, std::string_view text, std::byte* out) {
  if (text.size() > t.size)
    throw unsupported_in_hdf5(reason_code::damaged,
                              "a text of " + text::pluralize(text.size(), "byte") + " in a string of " + std::to_string(t.size));
  const bool spaces = t.kind == type_kind::text && H5Tget_strpad(t.file) == H5T_STR_SPACEPAD;
  std::memset(out, spaces ? ' ' : 0, t.size);
  std::memcpy(out, text.data(), text.size());
}

void write_pointer(const void* p, std::byte* out) { std::memcpy(out, &p, sizeof p); }

void write_list(const type_spec& t, const text::json& value, std::size_t level, std::byte*& out, reference_maker& references,
                value_arena& arena) {
  if (level == t.dims.size()) {
    write_json_value(t.base(), value, out, references, arena);
    out += t.base().size;
    return;
  }
  if (!value.is_array() || value.size() != t.dims[level]) misfit(value, "an array");
  for (const text::json& element : value) write_list(t, element, level + 1, out, references, arena);
}

// UTF-8 of code points up to the first run of zeros at the end.
std::string utf8_of(const std::byte* in, std::size_t size) {
  std::string out;
  std::size_t n = size / 4;
  std::uint32_t code = 0;
  for (; n > 0; --n) {
    std::memcpy(&code, in + 4 * (n - 1), 4);
    if (code != 0) break;
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::memcpy(&code, in + 4 * i, 4);
    if (code > 0x10FFFF)
      throw unsupported_in_hdf5(reason_code::unsupported_type, "a text with a character that Unicode does not have");
    const auto add = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xC0 | code >> 6);
      add(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      add(0xE0 | code >> 12);
      add(0x80 | (code >> 6 & 0x3F));
      add(0x80 | (code & 0x3F));
    } else {
      add(0xF0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3F));
      add(0x80 | (code >> 6 & 0x3F));
      add(0x80 | (code & 0x3F));
    }
  }
  return out;
}

bool is_one_byte_integer(const type_spec& t) { return t.kind == type_kind::integer && t.size == 1; }

}  // namespace

void value_arena::count(std::uint64_t bytes) {
  used_ += bytes + 64;
  if (used_ > max_bytes_)
    throw unsupported_in_hdf5(reason_code::too_large, "strings and sequences that take more than " +
                                                          text::format_bytes(max_bytes_) + " at once; increase `memory`");
}

std::byte* value_arena::block(std::size_t size) {
  count(size);
  return blocks_.emplace_back(std::max<std::size_t>(size, 1)).data();
}

char* value_arena::text(std::string_view s) {
  std::byte* p = block(s.size() + 1);
  std::memcpy(p, s.data(), s.size());
  return reinterpret_cast<char*>(p);
}

void value_arena::clear() {
  blocks_.clear();
  used_ = 0;
}

void write_json_value(const type_spec& t, const text::json& value, std::byte* out, reference_maker& references,
                      value_arena& arena) {
  switch (t.kind) {
    case type_kind::integer:
    case type_kind::boolean: return write_integer(t, value, out);
    case type_kind::floating: return write_bits(float_bits(value, t.size), t.size, t.big_endian, out);
    case type_kind::complex: {
      if (!value.is_array() || value.size() != 2) misfit(value, "a complex number");
      const std::size_t half = t.size / 2;
      write_bits(float_bits(value[0], half), half, t.big_endian, out);
      return write_bits(float_bits(value[1], half), half, t.big_endian, out + half);
    }
    case type_kind::bytes: {
      if (t.is_wide && value.is_string()) return write_digits(t, value, out);
      const auto bytes = base64_bytes(value);
      if (!bytes || bytes->size() != t.size) misfit(value, "bytes");
      std::memcpy(out, bytes->data(), t.size);
      return;
    }
    case type_kind::text: {
      if (value.is_string()) return write_text_value(t, value.get_ref<const std::string&>(), out, references, arena);
      const auto bytes = base64_bytes(value);
      if (!bytes) misfit(value, "a text");
      return write_text_value(t, *bytes, out, references, arena);
    }
    case type_kind::object_reference:
      if (!value.is_string() && !value.is_null()) misfit(value, "a path");
      return references.object(value.is_null() ? "" : value.get<std::string>(), out);
    case type_kind::region_reference: return references.region(value, out);
    case type_kind::compound:
      if (!value.is_object()) misfit(value, "a compound");
      for (const member_spec& m : t.members) {
        const auto part = value.find(text::escape_name(m.name));
        if (part == value.end()) misfit(value, "a compound");
        write_json_value(m.type, *part, out + m.offset, references, arena);
      }
      return;
    case type_kind::array: {
      if (value.is_string()) return write_text_value(t, value.get_ref<const std::string&>(), out, references, arena);
      std::byte* cursor = out;
      return write_list(t, value, 0, cursor, references, arena);
    }
    case type_kind::sequence: {
      if (!value.is_array()) misfit(value, "a sequence");
      hvl_t v{value.size(), nullptr};
      const std::size_t size = t.base().size;
      std::byte* items = arena.block(size * value.size());
      if (!value.empty()) v.p = items;
      for (const text::json& element : value) {
        write_json_value(t.base(), element, items, references, arena);
        items += size;
      }
      std::memcpy(out, &v, sizeof v);
      return;
    }
  }
}

void write_text_value(const type_spec& t, std::string_view text, std::byte* out, reference_maker& references,
                      value_arena& arena) {
  switch (t.kind) {
    case type_kind::text:
      if (!t.variable) return write_fixed_text(t, text, out);
      if (text.find('\0') != std::string_view::npos)
        throw unsupported_in_hdf5(reason_code::unsupported_type,
                                  "a text with a NUL, which HDF5's strings of variable length cannot have");
      return write_pointer(arena.text(text), out);
    case type_kind::object_reference: return references.object(std::string(text), out);
    case type_kind::region_reference:
      return references.region(text.empty() ? text::json("") : text::parse_untrusted_json(text), out);
    case type_kind::sequence:
      if (is_one_byte_integer(t.base())) {
        const hvl_t v{text.size(), arena.text(text)};
        std::memcpy(out, &v, sizeof v);
        return;
      }
      throw unsupported_in_hdf5(reason_code::damaged, "texts in the store where its notes have another type");
    case type_kind::array:  // netCDF's characters
      if (t.base().kind == type_kind::text && t.base().size == 1) return write_fixed_text(t, text, out);
      [[fallthrough]];
    default: throw unsupported_in_hdf5(reason_code::damaged, "texts in the store where its notes have another type");
  }
}

void write_element(const type_spec& t, const zarr_type& type, const std::byte* in, std::byte* out, reference_maker& references,
                   value_arena& arena) {
  const auto text = [&](std::string_view s) { write_text_value(t, s, out, references, arena); };
  if (type.kind == zarr_kind::text32) return text(utf8_of(in, type.size));
  if (type.kind == zarr_kind::terminated && t.size != type.size) {
    std::string_view s(reinterpret_cast<const char*>(in), type.size);
    while (s.ends_with('\0')) s.remove_suffix(1);
    return text(s);
  }
  if (type.kind == zarr_kind::record && t.kind == type_kind::compound) {
    if (type.fields.size() != t.members.size())
      throw unsupported_in_hdf5(reason_code::damaged, "a struct whose fields are not those of its notes");
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      const zarr::zarr_field& f = type.fields[i];
      if (text::escape_name(t.members[i].name) != text::escape_name(f.name))
        throw unsupported_in_hdf5(reason_code::damaged, "a struct whose fields are not those of its notes");
      write_element(t.members[i].type, f.type, in + f.offset, out + t.members[i].offset, references, arena);
    }
    return;
  }
  if (!is_same_layout(t, type))
    throw unsupported_in_hdf5(reason_code::damaged, "numbers in the store that do not fit the type in its notes");
  std::memcpy(out, in, t.size);
  set_order(t, out, 1);
}

bool is_same_layout(const type_spec& t, const zarr_type& type) {
  if (t.size != type.size || t.has_variable_parts()) return false;
  switch (type.kind) {
    case zarr_kind::boolean: return t.kind == type_kind::boolean || is_one_byte_integer(t);
    case zarr_kind::signed_integer:
    case zarr_kind::unsigned_integer:
      return (t.kind == type_kind::integer && t.is_signed == (type.kind == zarr_kind::signed_integer)) ||
             (t.kind == type_kind::boolean && t.size == 1) || (t.kind == type_kind::bytes && type.name.starts_with("numpy."));
    case zarr_kind::floating: return t.kind == type_kind::floating;
    case zarr_kind::complex: return t.kind == type_kind::complex;
    case zarr_kind::terminated: return t.kind == type_kind::text || t.kind == type_kind::bytes || t.kind == type_kind::array;
    case zarr_kind::raw: return t.kind == type_kind::bytes || t.kind == type_kind::array;
    case zarr_kind::record:
      if (t.kind != type_kind::compound || t.members.size() != type.fields.size()) return false;
      for (std::size_t i = 0; i < type.fields.size(); ++i) {
        if (text::escape_name(t.members[i].name) != text::escape_name(type.fields[i].name) ||
            t.members[i].offset != type.fields[i].offset || !is_same_layout(t.members[i].type, type.fields[i].type))
          return false;
      }
      return true;
    default: return false;
  }
}

bool has_order(const type_spec& t, bool big_endian) {
  switch (t.kind) {
    case type_kind::integer:
    case type_kind::floating: return t.size == 1 || t.big_endian == big_endian;
    case type_kind::complex: return t.big_endian == big_endian;
    case type_kind::bytes: return !t.is_ordered || t.big_endian == big_endian;
    case type_kind::compound:
      return std::all_of(t.members.begin(), t.members.end(), [&](const member_spec& m) { return has_order(m.type, big_endian); });
    default: return true;  // an array in a struct is bytes of the store, which have their order already
  }
}

void set_order(const type_spec& t, std::byte* values, std::size_t count) {
  if (t.kind == type_kind::compound) {
    for (const member_spec& m : t.members) {
      if (has_order(m.type, native_big)) continue;
      for (std::size_t i = 0; i < count; ++i) set_order(m.type, values + i * t.size + m.offset, 1);
    }
    return;
  }
  if (has_order(t, native_big)) return;
  const std::size_t unit = t.kind == type_kind::complex ? t.size / 2 : t.size;
  for (std::byte* p = values; p != values + count * t.size; p += unit) std::reverse(p, p + unit);
}

}  // namespace zarrbits::exporting
