// SPDX-License-Identifier: BSL-1.0
//
// Data types and fill values of a zarr.json.
//
#include "metadata/named_configuration.hpp"
#include "text/base64.hpp"
#include "text/json_text.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <zarrbits/data_type.hpp>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

namespace zarrbits::zarr {

using nlohmann::json;

namespace {

zarr_kind kind_of_number(const std::string& name) {
  if (name == "bool") return zarr_kind::boolean;
  if (name.starts_with("complex")) return zarr_kind::complex;
  if (name.starts_with("uint")) return zarr_kind::unsigned_integer;
  if (name.starts_with("int") || name.starts_with("numpy.")) return zarr_kind::signed_integer;
  return zarr_kind::floating;
}

struct float_layout {
  unsigned exponent_bits;
  unsigned mantissa_bits;
};

// The layout of IEEE-like floats; the small ones have their own rules, and hexadecimal fill values.
std::optional<float_layout> layout_of(const std::string& name) {
  const std::string_view n = std::string_view(name).substr(name.starts_with("complex_") ? 8 : 0);
  if (n == "float64" || n == "complex128") return float_layout{11, 52};
  if (n == "float32" || n == "complex64") return float_layout{8, 23};
  if (n == "float16") return float_layout{5, 10};
  if (n == "bfloat16") return float_layout{8, 7};
  return {};
}

// The bits of the float nearest to `value`, ties to even.
std::uint64_t float_bits(double value, float_layout l) {
  if (l.mantissa_bits == 52) return std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = std::uint64_t{std::signbit(value)} << (l.exponent_bits + l.mantissa_bits);
  const std::uint64_t infinity = ((std::uint64_t{1} << l.exponent_bits) - 1) << l.mantissa_bits;
  if (std::isnan(value)) return sign | infinity | (std::uint64_t{1} << (l.mantissa_bits - 1));
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  const int bias = (1 << (l.exponent_bits - 1)) - 1;
  int exponent = std::isinf(value) ? 1 << 20 : std::ilogb(magnitude);
  if (exponent > bias) return sign | infinity;
  exponent = std::max(exponent, 1 - bias);
  // an integer in units of the last place; a carry moves into the exponent by itself
  const double units = std::nearbyint(std::ldexp(magnitude, static_cast<int>(l.mantissa_bits) - exponent));
  const auto mantissa = static_cast<std::uint64_t>(units);
  return sign | (mantissa + (static_cast<std::uint64_t>(exponent + bias - 1) << l.mantissa_bits));
}

std::uint64_t parse_hexadecimal(const std::string& text) {
  std::uint64_t value = 0;
  if (text.size() < 3 || text.size() > 18)
    throw store_error("\"fill_value\" is \"" + text + "\", which is not a hexadecimal number");
  for (std::size_t i = 2; i < text.size(); ++i) {
    const char c = text[i];
    unsigned digit = 0;
    if (c >= '0' && c <= '9') digit = static_cast<unsigned>(c - '0');
    else if (c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a') + 10;
    else if (c >= 'A' && c <= 'F') digit = static_cast<unsigned>(c - 'A') + 10;
    else throw store_error("\"fill_value\" is \"" + text + "\", which is not a hexadecimal number");
    value = value << 4 | digit;
  }
  return value;
}

[[noreturn]] void throw_invalid_fill(const zarr_type& type, const json& fill) {
  throw store_error("\"fill_value\" is " + text::sorted_json_text(fill) + ", which is not a value of " + type.name);
}

std::uint64_t parse_float(const zarr_type& type, const json& fill) {
  const auto layout = layout_of(type.name);
  if (fill.is_string()) {
    const std::string text = fill.get<std::string>();
    if (text.starts_with("0x") || text.starts_with("0X")) return parse_hexadecimal(text);
    if (layout && text == "NaN") return float_bits(std::numeric_limits<double>::quiet_NaN(), *layout);
    if (layout && text == "Infinity") return float_bits(std::numeric_limits<double>::infinity(), *layout);
    if (layout && text == "-Infinity") return float_bits(-std::numeric_limits<double>::infinity(), *layout);
    throw_invalid_fill(type, fill);
  }
  if (!fill.is_number() && !fill.is_binary()) throw_invalid_fill(type, fill);
  const double value = fill.is_binary() ? std::strtod(text::sorted_json_text(fill).c_str(), nullptr) : fill.get<double>();
  if (layout) return float_bits(value, *layout);
  if (value == 0 && !std::signbit(value)) return 0;  // same for every small float
  throw not_supported(reason_code::damaged,
                      "the fill value " + text::sorted_json_text(fill) + " of " + type.name + " is not hexadecimal");
}

// `value` as a component of `size` bytes in this machine's byte order.
void write_component(std::uint64_t value, std::size_t size, std::byte* out) {
  if constexpr (std::endian::native == std::endian::big) value <<= 8 * (8 - size);
  std::memcpy(out, &value, size);
}

// Bytes are written as a list of numbers or as base64.
std::vector<std::byte> parse_byte_string(const zarr_type& type, const json& fill) {
  if (fill.is_string()) {
    const auto bytes = text::decode_base64(fill.get_ref<const std::string&>());
    if (!bytes) throw store_error("\"fill_value\" is not base64");
    return *bytes;
  }
  if (!fill.is_array()) throw_invalid_fill(type, fill);
  std::vector<std::byte> out;
  for (const json& b : fill) {
    if (!b.is_number_unsigned() || b.get<std::uint64_t>() > 255) throw_invalid_fill(type, fill);
    out.push_back(static_cast<std::byte>(b.get<std::uint64_t>()));
  }
  return out;
}

std::vector<std::byte> parse_utf32(const zarr_type& type, const json& fill) {
  if (!fill.is_string()) throw_invalid_fill(type, fill);
  const std::string text = fill.get<std::string>();
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
    if (i + length > text.size()) throw_invalid_fill(type, fill);
    for (std::size_t k = 1; k < length; ++k) code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3Fu);
    out.resize(out.size() + 4);
    std::memcpy(out.data() + out.size() - 4, &code, 4);
    i += length;
  }
  return out;
}

void parse_fixed_fill(const zarr_type& type, const json& fill, std::byte* out) {
  std::vector<std::byte> bytes;
  switch (type.kind) {
    case zarr_kind::boolean:
      if (!fill.is_boolean()) throw_invalid_fill(type, fill);
      *out = static_cast<std::byte>(fill.get<bool>());
      return;
    case zarr_kind::signed_integer: {
      if (type.name.starts_with("numpy.") && fill == "NaT") return write_component(std::uint64_t{1} << 63, type.size, out);
      if (!fill.is_number_integer() || (fill.is_number_unsigned() && fill.get<std::uint64_t>() > INT64_MAX))
        throw_invalid_fill(type, fill);
      const std::int64_t v = fill.get<std::int64_t>();
      if (type.bits < 64 && (v >= (std::int64_t{1} << (type.bits - 1)) || v < -(std::int64_t{1} << (type.bits - 1))))
        throw_invalid_fill(type, fill);
      return write_component(static_cast<std::uint64_t>(v), type.size, out);
    }
    case zarr_kind::unsigned_integer: {
      if (!fill.is_number_unsigned()) throw_invalid_fill(type, fill);
      const std::uint64_t v = fill.get<std::uint64_t>();
      if (type.bits < 64 && v >> type.bits != 0) throw_invalid_fill(type, fill);
      return write_component(v, type.size, out);
    }
    case zarr_kind::floating: return write_component(parse_float(type, fill), type.size, out);
    case zarr_kind::complex:
      if (!fill.is_array() || fill.size() != 2) throw_invalid_fill(type, fill);
      write_component(parse_float(type, fill[0]), type.size / 2, out);
      return write_component(parse_float(type, fill[1]), type.size / 2, out + type.size / 2);
    case zarr_kind::raw:
    case zarr_kind::terminated:
      bytes = parse_byte_string(type, fill);
      if (type.kind == zarr_kind::raw ? bytes.size() != type.size : bytes.size() > type.size) throw_invalid_fill(type, fill);
      break;
    case zarr_kind::text32:
      bytes = parse_utf32(type, fill);
      if (bytes.size() > type.size) throw_invalid_fill(type, fill);
      break;
    case zarr_kind::record:
      if (fill.is_object()) {
        if (fill.size() != type.fields.size()) throw_invalid_fill(type, fill);
        for (const zarr_field& f : type.fields) {
          if (!fill.contains(f.name)) throw_invalid_fill(type, fill);
          parse_fixed_fill(f.type, fill[f.name], out + f.offset);
        }
        return;
      }
      bytes = parse_byte_string(type, fill);  // numpy's memory, always little endian in practice
      if (bytes.size() != type.size) throw_invalid_fill(type, fill);
      if constexpr (std::endian::native == std::endian::big)
        throw not_supported(reason_code::unsupported_type, "a struct's fill value in base64");
      break;
    default: throw_invalid_fill(type, fill);
  }
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
}

}  // namespace

zarr_type parse_type(const json& data_type, unsigned depth) {
  if (depth > 32) throw not_supported(reason_code::unsupported_type, "structs nested more than 32 deep");
  zarr_type t;
  t.name = metadata::name_of(data_type);
  if (t.name.empty()) throw store_error("\"data_type\" is " + text::sorted_json_text(data_type) + ", which has no name");
  if (t.name == "string") {
    t.kind = zarr_kind::text;
    return t;
  }
  if (t.name == "bytes" || t.name == "variable_length_bytes") {
    t.kind = zarr_kind::binary;
    return t;
  }
  if (t.name.find_first_of("<>|[") == 0)  // v2_store.cpp leaves what Zarr v3 has no type for
    throw not_supported(reason_code::unsupported_type,
                        "the data type " + t.name + " of Zarr v2" +
                            (t.name == "|O" ? ", objects, other than as texts (vlen-utf8) and bytes (vlen-bytes)" : ""));
  const zarrbits::data_type core(data_type.is_string() ? data_type.get<std::string>() : text::sorted_json_text(data_type));
  t.size = core.element_size();
  t.bits = core.component_bits();
  if (t.name == "struct" || t.name == "structured") {  // the older name has pairs; the core has checked their form
    t.kind = zarr_kind::record;
    for (const auto& f : metadata::struct_fields(data_type)) {
      zarr_field field;
      field.name = f.name.get<std::string>();
      field.type = parse_type(f.data_type, depth + 1);
      if (field.type.variable()) throw not_supported(reason_code::unsupported_type, "a struct with a field of variable length");
      field.offset = t.fields.empty() ? 0 : t.fields.back().offset + t.fields.back().type.size;
      t.fields.push_back(std::move(field));
    }
  } else if (t.name == "fixed_length_utf32") {
    t.kind = zarr_kind::text32;
  } else if (t.name == "null_terminated_bytes") {
    t.kind = zarr_kind::terminated;
  } else if (core.components() == 0) {
    t.kind = zarr_kind::raw;
  } else {
    t.kind = kind_of_number(t.name);
    if (t.name.starts_with("numpy.")) {
      const json configuration = metadata::configuration_of(data_type);
      const auto scale = configuration.at("scale_factor").get<std::uint64_t>();
      t.unit = (scale == 1 ? "" : std::to_string(scale)) + configuration.at("unit").get<std::string>();
    }
  }
  return t;
}

element_buffer parse_fill(const zarr_type& type, const json& fill) {
  element_buffer v;
  if (type.kind == zarr_kind::text) {
    if (!fill.is_string()) throw_invalid_fill(type, fill);
    v.strings.push_back(fill.get<std::string>());
  } else if (type.kind == zarr_kind::binary) {
    const std::vector<std::byte> bytes = parse_byte_string(type, fill);
    v.strings.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } else {
    v.data.resize(type.size);
    parse_fixed_fill(type, fill, v.data.data());
  }
  return v;
}

}  // namespace zarrbits::zarr
