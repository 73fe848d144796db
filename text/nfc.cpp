// SPDX-License-Identifier: BSL-1.0
#include "text/nfc.hpp"

#include "text/format.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace zarrbits::text {

namespace {

struct decomposition {
  std::uint32_t code, first, second;  // second: 0 if absent
  bool composes;                      // the two become `code` again
};

struct combining_range {
  std::uint32_t first, last;
  std::uint8_t combining_class;
};

#include "text/nfc_table.inc"

// Syllables of Hangul are computed.
constexpr std::uint32_t hangul = 0xAC00, leading = 0x1100, vowel = 0x1161, trailing = 0x11A7;
constexpr std::uint32_t vowels = 21, trailings = 28, syllables = 19 * vowels * trailings;

std::uint8_t combining_class(std::uint32_t code) {
  const auto range = std::upper_bound(std::begin(combining_ranges), std::end(combining_ranges), code,
                                      [](std::uint32_t c, const combining_range& r) { return c <= r.last; });
  return range != std::end(combining_ranges) && code >= range->first ? range->combining_class : std::uint8_t{0};
}

void decompose(std::uint32_t code, std::vector<std::uint32_t>& out) {
  if (code >= hangul && code < hangul + syllables) {
    const std::uint32_t index = code - hangul, last = index % trailings;
    out.insert(out.end(), {leading + index / (vowels * trailings), vowel + index / trailings % vowels});
    if (last > 0) out.push_back(trailing + last);
    return;
  }
  const auto entry = std::lower_bound(std::begin(decompositions), std::end(decompositions), code,
                                      [](const decomposition& d, std::uint32_t c) { return d.code < c; });
  if (entry == std::end(decompositions) || entry->code != code) return out.push_back(code);
  decompose(entry->first, out);
  if (entry->second != 0) decompose(entry->second, out);
}

// The code point that is the two together; 0 if they have none.
std::uint32_t composed(std::uint32_t first, std::uint32_t next) {
  if (first >= leading && first < leading + 19 && next >= vowel && next < vowel + vowels)
    return hangul + ((first - leading) * vowels + next - vowel) * trailings;
  if (first >= hangul && first < hangul + syllables && (first - hangul) % trailings == 0 && next > trailing &&
      next < trailing + trailings)
    return first + next - trailing;
  static const auto pairs = [] {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> table;
    for (const decomposition& d : decompositions) {
      if (d.composes) table[{d.first, d.second}] = d.code;
    }
    return table;
  }();
  const auto entry = pairs.find({first, next});
  return entry == pairs.end() ? 0 : entry->second;
}

void sort_marks(std::vector<std::uint32_t>& codes) {
  for (auto begin = codes.begin(); begin != codes.end();) {
    const auto end = std::find_if(begin, codes.end(), [](std::uint32_t c) { return combining_class(c) == 0; });
    std::stable_sort(begin, end, [](std::uint32_t a, std::uint32_t b) { return combining_class(a) < combining_class(b); });
    begin = end == codes.end() ? end : end + 1;
  }
}

std::vector<std::uint32_t> compose(const std::vector<std::uint32_t>& codes) {
  std::vector<std::uint32_t> out;
  std::size_t starter = 0;
  bool has_starter = false;
  std::uint8_t last = 0;  // the class of what was put after the starter
  for (const std::uint32_t code : codes) {
    const std::uint8_t kind = combining_class(code);
    const bool adjacent = has_starter && starter + 1 == out.size();
    if (has_starter && (adjacent || (last != 0 && last < kind))) {
      if (const std::uint32_t composite = composed(out[starter], code); composite != 0) {
        out[starter] = composite;
        continue;
      }
    }
    if (kind == 0) {
      starter = out.size();
      has_starter = true;
    }
    last = kind;
    out.push_back(code);
  }
  return out;
}

std::vector<std::uint32_t> code_points(std::string_view text) {
  std::vector<std::uint32_t> codes;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t k) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i + k])); };
    const std::size_t n = byte(0) < 0x80 ? 1 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
    std::uint32_t code = n == 1 ? byte(0) : byte(0) & (0x7FU >> n);
    for (std::size_t k = 1; k < n; ++k) code = code << 6 | (byte(k) & 0x3FU);
    codes.push_back(code);
    i += n;
  }
  return codes;
}

void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) put(0xC0 | code >> 6);
  else if (code < 0x10000) put(0xE0 | code >> 12);
  else put(0xF0 | code >> 18);
  if (code >= 0x10000) put(0x80 | (code >> 12 & 0x3F));
  if (code >= 0x800) put(0x80 | (code >> 6 & 0x3F));
  put(0x80 | (code & 0x3F));
}

}  // namespace

std::string to_nfc(std::string_view text) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii || !is_utf8(text)) return std::string(text);
  std::vector<std::uint32_t> codes;
  for (const std::uint32_t code : code_points(text)) decompose(code, codes);
  sort_marks(codes);
  std::string out;
  for (const std::uint32_t code : compose(codes)) append_utf8(code, out);
  return out;
}

}  // namespace zarrbits::text
