// SPDX-License-Identifier: BSL-1.0
#include "verify/value_format.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace zarrbits::verification {

std::uint64_t load(const std::byte* p, std::size_t size) {
  std::uint64_t v = 0;
  std::memcpy(&v, p, size);
  if constexpr (std::endian::native == std::endian::big) v >>= 8 * (8 - size);
  return v;
}

std::int64_t load_signed(const std::byte* p, std::size_t size) {
  const unsigned unused = static_cast<unsigned>(64 - 8 * size);
  return static_cast<std::int64_t>(load(p, size) << unused) >> unused;
}

std::uint64_t load_source(const source_type& t, const std::byte* p) {
  if (!t.reversed) return load(p, t.size);
  std::byte turned[8] = {};
  std::reverse_copy(p, p + t.size, turned);
  return load(turned, t.size);
}

std::int64_t load_source_signed(const source_type& t, const std::byte* p) {
  const unsigned unused = static_cast<unsigned>(64 - 8 * t.size);
  return static_cast<std::int64_t>(load_source(t, p) << unused) >> unused;
}

namespace {

// The value of a float of `size` bytes with this number of exponent bits.
double ieee_value(std::uint64_t bits, unsigned exponent_bits, unsigned mantissa_bits) {
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << mantissa_bits) - 1);
  const auto top = (1u << exponent_bits) - 1;
  const auto exponent = static_cast<unsigned>(bits >> mantissa_bits) & top;
  const bool negative = (bits >> (mantissa_bits + exponent_bits) & 1) != 0;
  const int bias = static_cast<int>(top / 2);
  double v = 0;
  if (exponent == top) {
    v = mantissa != 0 ? std::nan("") : HUGE_VAL;
  } else if (exponent == 0) {
    v = std::ldexp(static_cast<double>(mantissa), 1 - bias - static_cast<int>(mantissa_bits));
  } else {
    v = std::ldexp(static_cast<double>(mantissa | std::uint64_t{1} << mantissa_bits),
                   static_cast<int>(exponent) - bias - static_cast<int>(mantissa_bits));
  }
  return negative ? -v : v;
}

}  // namespace

std::optional<double> float_value(std::string_view name, const std::byte* p) {
  if (name == "float64") return std::bit_cast<double>(load(p, 8));
  if (name == "float32") return ieee_value(load(p, 4), 8, 23);
  if (name == "float16") return ieee_value(load(p, 2), 5, 10);
  if (name == "bfloat16") return ieee_value(load(p, 2), 8, 7);
  return {};
}

std::string hex(const std::byte* p, std::size_t size) {
  static const char digits[] = "0123456789abcdef";
  std::string out = "0x";
  for (std::size_t i = 0; i < std::min<std::size_t>(size, 16); ++i) {
    out += digits[std::to_integer<unsigned>(p[i]) >> 4];
    out += digits[std::to_integer<unsigned>(p[i]) & 15];
  }
  return size > 16 ? out + "..." : out;
}

std::string format_text(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size() && i < 60;) {
    const std::size_t length = utf8_length(text.substr(i));
    const auto byte = static_cast<unsigned char>(text[i]);
    if (length == 0 || byte < 0x20 || byte == 0x7f || byte == '"') {
      const std::byte b{byte};
      out += "\\x" + hex(&b, 1).substr(2);
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  return out + (text.size() > 60 ? "\"..." : "\"");
}

std::string format_float(double v, const std::byte* p, std::size_t size) {
  char text[40];
  if (std::isnan(v)) {  // its bits may differ
    std::snprintf(text, sizeof text, "NaN (0x%0*llx)", static_cast<int>(2 * size),
                  static_cast<unsigned long long>(load(p, size)));
    return text;
  }
  std::snprintf(text, sizeof text, size >= 8 ? "%.17g" : "%.9g", v);
  return text;
}

std::string format_source(const source_type& t, const std::byte* p) {
  switch (t.kind) {
    case source_kind::integer:
      if (t.is_bool && load_source(t, p) <= 1) return load_source(t, p) != 0 ? "true" : "false";
      return t.is_signed ? std::to_string(load_source_signed(t, p)) : std::to_string(load_source(t, p));
    case source_kind::bitfield: return std::to_string(load_source(t, p));
    case source_kind::floating: return format_float(*float_value("float" + std::to_string(8 * t.size), p), p, t.size);
    default: return hex(p, t.size);
  }
}

std::size_t utf8_length(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte_at(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(i) & 0xC0) != 0x80) return 0;
  }
  // rejects overlong forms, surrogates and numbers beyond the last character
  if ((lead == 0xE0 && byte_at(1) < 0xA0) || (lead == 0xED && byte_at(1) >= 0xA0) || (lead == 0xF0 && byte_at(1) < 0x90) ||
      (lead == 0xF4 && byte_at(1) >= 0x90))
    return 0;
  return length;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string format_name(std::string_view name) {
  static const char digits[] = "0123456789ABCDEF";
  std::string out;
  while (!name.empty()) {
    const std::size_t length = utf8_length(name);
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(name[0]);
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += name.substr(0, length);
    }
    name.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace zarrbits::verification
