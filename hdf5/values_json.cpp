// SPDX-License-Identifier: BSL-1.0
#include "hdf5/values_json.hpp"

#include "text/base64.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace zarrbits::hdf5 {

namespace {

std::uint64_t word(const std::byte* p, std::size_t size, bool big) {
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < size; ++i) v |= std::to_integer<std::uint64_t>(p[big ? size - 1 - i : i]) << (8 * i);
  return v;
}

double half_to_double(std::uint64_t h) {
  const int exponent = static_cast<int>((h >> 10) & 31);
  const auto mantissa = static_cast<double>(h & 1023);
  if (exponent == 31) {
    const double special = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    return (h & 0x8000) ? -special : special;
  }
  const double v = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (h & 0x8000) ? -v : v;
}

double to_double(std::uint64_t bits, std::size_t size) {
  if (size == 8) return std::bit_cast<double>(bits);
  if (size == 4) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return half_to_double(bits);
}

struct float_limits {
  std::uint64_t exponent, mantissa, canonical;
};

float_limits limits_of(std::size_t size) {
  if (size == 8) return {0x7FF0000000000000, 0x000FFFFFFFFFFFFF, 0x7FF8000000000000};
  if (size == 4) return {0x7F800000, 0x007FFFFF, 0x7FC00000};
  return {0x7C00, 0x03FF, 0x7E00};
}

text::json float_json(std::uint64_t bits, std::size_t size) {
  const float_limits f = limits_of(size);
  if ((bits & f.exponent) == f.exponent) {
    if ((bits & f.mantissa) == 0) return bits == f.exponent ? "Infinity" : "-Infinity";
    if (bits == f.canonical) return "NaN";
    char text[24];
    std::snprintf(text, sizeof text, "0x%0*llx", static_cast<int>(2 * size), static_cast<unsigned long long>(bits));
    return text;
  }
  return to_double(bits, size);
}

text::json array_json(const type_description& t, std::size_t level, const std::byte*& p, reference_reader& references) {
  if (level == t.dims.size()) {
    text::json v = value_json(t.element(), p, references);
    p += t.element().size;
    return v;
  }
  text::json list = text::json::array();
  for (std::uint64_t i = 0; i < t.dims[level]; ++i) list.push_back(array_json(t, level + 1, p, references));
  return list;
}

// The decimal digits of an integer of any length.
std::string digits(std::span<const std::byte> bytes, bool big_endian, bool is_signed) {
  std::vector<unsigned> magnitude;  // the most significant first
  for (std::size_t i = 0; i < bytes.size(); ++i)
    magnitude.push_back(std::to_integer<unsigned>(bytes[big_endian ? i : bytes.size() - 1 - i]));
  const bool negative = is_signed && magnitude.front() >= 128;
  if (negative) {
    unsigned carry = 1;
    for (std::size_t i = magnitude.size(); i-- > 0;) {
      carry += 255 - magnitude[i];
      magnitude[i] = carry & 255;
      carry >>= 8;
    }
  }
  std::string text;
  bool has_more = true;
  while (has_more) {
    unsigned remainder = 0;
    has_more = false;
    for (unsigned& b : magnitude) {
      const unsigned v = 256 * remainder + b;
      b = v / 10;
      remainder = v % 10;
      has_more = has_more || b != 0;
    }
    text.insert(text.begin(), static_cast<char>('0' + remainder));
  }
  return negative ? "-" + text : text;
}

text::json bytes_json(std::span<const std::byte> bytes) { return {{"base64", text::base64(bytes)}}; }

}  // namespace

text::json text_or_base64(std::string_view s) {
  return text::is_utf8(s) ? text::json(s) : bytes_json(std::as_bytes(std::span(s.data(), s.size())));
}

text::json number_json(const type_description& t, const std::byte* p) {
  switch (t.kind) {
    case type_class::boolean: return std::to_integer<int>(*p) != 0;
    case type_class::integer:
    case type_class::enumeration: {
      const std::uint64_t v = word(p, t.size, t.big_endian);
      if (!t.is_signed) return v;
      const auto shift = static_cast<unsigned>(64 - 8 * t.size);
      return static_cast<std::int64_t>(v << shift) >> shift;
    }
    case type_class::floating: return float_json(word(p, t.size, t.big_endian), t.size);
    case type_class::complex: {
      const std::size_t half = t.size / 2;
      return text::json::array(
          {float_json(word(p, half, t.big_endian), half), float_json(word(p + half, half, t.big_endian), half)});
    }
    default: return nullptr;
  }
}

std::string_view text_of(const type_description& t, const std::byte* p) {
  if (t.variable) {
    const char* s = nullptr;
    std::memcpy(&s, p, sizeof s);
    return s ? std::string_view(s) : std::string_view();
  }
  std::string_view s(reinterpret_cast<const char*>(p), t.size);
  while (!s.empty() && (s.back() == '\0' || (t.space_padded && s.back() == ' '))) s.remove_suffix(1);
  return s;
}

text::json value_json(const type_description& t, const std::byte* p, reference_reader& references) {
  switch (t.kind) {
    case type_class::text: {
      const std::string_view s = text_of(t, p);
      return text_or_base64(s);
    }
    case type_class::opaque:
      return t.wide_integer ? text::json(digits({p, t.size}, t.big_endian, t.is_signed)) : bytes_json({p, t.size});
    case type_class::compound: {
      text::json object = text::json::object();
      for (const type_description& m : t.parts) object[text::escape_name(m.name)] = value_json(m, p + m.offset, references);
      return object;
    }
    case type_class::array: {
      const std::byte* cursor = p;
      return array_json(t, 0, cursor, references);
    }
    case type_class::sequence: {
      hvl_t v;
      std::memcpy(&v, p, sizeof v);
      text::json list = text::json::array();
      const auto* item = static_cast<const std::byte*>(v.p);
      for (std::size_t i = 0; item && i < v.len; ++i)
        list.push_back(value_json(t.element(), item + i * t.element().size, references));
      return list;
    }
    case type_class::object_reference: return references.object(p);
    case type_class::region_reference: return references.region(p);
    case type_class::unsupported: return nullptr;
    case type_class::boolean:
      if (const auto v = std::to_integer<std::uint8_t>(*p); v > 1)
        return t.is_signed ? text::json(static_cast<std::int8_t>(v)) : text::json(v);
      return number_json(t, p);
    default: return number_json(t, p);
  }
}

text::json fill_json(const type_description& t, const std::byte* p) {
  switch (t.kind) {
    case type_class::text:
    case type_class::opaque:
    case type_class::array: return text::base64(std::span(p, t.size));
    case type_class::compound: {
      text::json object = text::json::object();
      for (const type_description& m : t.parts) object[m.name] = fill_json(m, p + m.offset);
      return object;
    }
    default: return number_json(t, p);
  }
}

}  // namespace zarrbits::hdf5
