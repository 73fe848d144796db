// SPDX-License-Identifier: BSL-1.0
#include "command/option_parsers.hpp"

#include "command/command_line.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <system_error>

namespace zarrbits::command {

namespace {

std::uint64_t parse_number(const std::string& option, std::string_view digits, const std::string& text) {
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (digits.empty() || error == std::errc::invalid_argument || end != digits.data() + digits.size()) {
    throw usage_error(option + " is \"" + text + "\", in which \"" + std::string(digits) +
                      "\" is not a number; use decimal digits, such as 1000");
  }
  if (error == std::errc::result_out_of_range || n > std::uint64_t{1} << 62)
    throw usage_error(option + " is \"" + text + "\", which is too large");
  return n;
}

[[noreturn]] void refuse_compression(const std::string& text) {
  throw usage_error("\"" + text +
                    "\" is not a compression; use none, gzip:LEVEL (1-9), zstd:LEVEL (1-22), or "
                    "blosc:NAME:LEVEL:SHUFFLE with lz4, lz4hc, zlib or zstd, 1-9, and noshuffle, shuffle or bitshuffle");
}

template <class E>
struct word {
  const char* text;
  E value;
};

template <class E, std::size_t N>
std::optional<E> find_word(const word<E> (&words)[N], std::string_view text) {
  const auto entry = std::find_if(std::begin(words), std::end(words), [&](const word<E>& w) { return w.text == text; });
  return entry == std::end(words) ? std::nullopt : std::optional(entry->value);
}

}  // namespace

std::optional<profile> parse_profile(const std::string& text) {
  static constexpr word<profile> words[] = {
      {"portable", profile::portable}, {"native", profile::native}, {"recode", profile::recode}};
  if (text.empty()) return {};
  if (const auto value = find_word(words, text)) return value;
  throw usage_error("\"" + text + "\" is not a profile; use portable, native or recode");
}

std::optional<convention> parse_convention(const std::string& text) {
  static constexpr word<convention> words[] = {
      {"none", convention::none},   {"netcdf", convention::netcdf}, {"anndata", convention::anndata},  {"nwb", convention::nwb},
      {"nexus", convention::nexus}, {"matlab", convention::matlab}, {"pytables", convention::pytables}};
  if (text.empty()) return {};
  if (const auto value = find_word(words, text)) return value;
  throw usage_error("\"" + text + "\" is not a convention; use none, netcdf, anndata, nwb, nexus, matlab or pytables");
}

std::optional<link_policy> parse_links(const std::string& text) {
  static constexpr word<link_policy> words[] = {
      {"keep", link_policy::keep}, {"copy", link_policy::copy}, {"refuse", link_policy::refuse}};
  if (text.empty()) return {};
  if (const auto value = find_word(words, text)) return value;
  throw usage_error("--links is \"" + text + "\"; use keep, copy or refuse");
}

concatenation::order_type parse_order(const std::string& text) {
  using order = concatenation::order_type;
  static constexpr word<order> words[] = {
      {"", order::given}, {"given", order::given}, {"name", order::name}, {"value", order::value}};
  if (const auto value = find_word(words, text)) return *value;
  throw usage_error("\"" + text + "\" is not an order of files; use given, name or value");
}

concatenation::different_type parse_different(const std::string& text) {
  using different = concatenation::different_type;
  static constexpr word<different> words[] = {
      {"", different::refuse}, {"refuse", different::refuse}, {"first", different::first}, {"skip", different::skip}};
  if (const auto value = find_word(words, text)) return *value;
  throw usage_error("--different is \"" + text + "\"; use refuse, first or skip");
}

std::optional<compression> parse_compression(const std::string& text) {
  static constexpr word<compressor> kinds[] = {
      {"none", compressor::none}, {"gzip", compressor::gzip}, {"zstd", compressor::zstd}, {"blosc", compressor::blosc}};
  static constexpr word<blosc_compressor> insides[] = {{"lz4", blosc_compressor::lz4},
                                                       {"lz4hc", blosc_compressor::lz4hc},
                                                       {"zlib", blosc_compressor::zlib},
                                                       {"zstd", blosc_compressor::zstd}};
  static constexpr word<blosc_shuffle> shuffles[] = {
      {"noshuffle", blosc_shuffle::none}, {"shuffle", blosc_shuffle::bytes}, {"bitshuffle", blosc_shuffle::bits}};
  if (text.empty()) return {};
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ':') words.emplace_back();
    else words.back() += c;
  }
  const auto parse_choice = [&](const auto& choices, const std::string& w) {
    const auto value = find_word(choices, w);
    if (!value) refuse_compression(text);
    return *value;
  };
  compression c;
  c.kind = parse_choice(kinds, words[0]);
  const bool blosc = c.kind == compressor::blosc;
  if (words.size() > (blosc ? 4U : c.kind == compressor::none ? 1U : 2U)) refuse_compression(text);
  if (blosc && words.size() > 1) c.inside = parse_choice(insides, words[1]);
  if (const std::size_t i = blosc ? 2 : 1; i < words.size()) {
    const auto [end, error] = std::from_chars(words[i].data(), words[i].data() + words[i].size(), c.level);
    if (error != std::errc() || end != words[i].data() + words[i].size() || c.level < 1 ||
        c.level > (c.kind == compressor::zstd ? 22 : 9))
      refuse_compression(text);
  }
  if (words.size() > 3) c.shuffle = parse_choice(shuffles, words[3]);
  return c;
}

file_format parse_libver(const std::string& text) {
  if (!text.empty() && text != "compatible" && text != "latest")
    throw usage_error("--libver is compatible or latest, not " + quote(text));
  return text == "latest" ? file_format::latest : file_format::compatible;
}

array_codec parse_array_codec(const std::string& text) {
  static constexpr word<array_codec> words[] = {
      {"", array_codec::automatic}, {"bytes", array_codec::bytes}, {"packbits", array_codec::packbits}};
  if (const auto value = find_word(words, text)) return *value;
  throw usage_error("\"" + text + "\" is not a codec that the converter writes; use \"bytes\" or \"packbits\"");
}

grid_type parse_grid(const std::string& text) {
  static constexpr word<grid_type> words[] = {
      {"", grid_type::regular}, {"regular", grid_type::regular}, {"rectilinear", grid_type::rectilinear}};
  if (const auto value = find_word(words, text)) return *value;
  throw usage_error("--grid is \"" + text + "\"; use regular or rectilinear");
}

checksum parse_checksum(const std::string& text) {
  static constexpr word<checksum> words[] = {{"", checksum::none}, {"crc32c", checksum::crc32c}};
  if (const auto value = find_word(words, text)) return *value;
  throw usage_error("\"" + text + "\" is not a checksum that the converter writes; use crc32c");
}

std::optional<zarr_format> parse_zarr_format(const std::string& text) {
  if (text.empty()) return {};
  static constexpr word<zarr_format> words[] = {{"2", zarr_format::v2}, {"3", zarr_format::v3}, {"both", zarr_format::both}};
  if (const auto value = find_word(words, text)) return value;
  throw usage_error("\"" + text + "\" is not a format of Zarr; use 2, 3 or both");
}

std::optional<source_base> parse_base(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t url = text.find("://"), equals = text.rfind('=', url);
  if (equals == text.npos) return source_base{{}, text};
  if (equals == 0) throw usage_error("--base " + text + " has no folder before \"=\"; use FOLDER=URL or URL");
  return source_base{text.substr(0, equals), text.substr(equals + 1)};
}

unsigned parse_threads(const std::string& text) {
  if (text.empty()) return 0;
  const std::uint64_t n = parse_count("--threads", text);
  if (n < 1 || n > 1024) throw usage_error("--threads is 1 to 1024, not " + text);
  return static_cast<unsigned>(n);
}

std::uint64_t parse_bytes(const std::string& option, const std::string& text) {
  unsigned shift = 0;
  std::string_view digits = text;
  if (digits.ends_with("iB")) digits.remove_suffix(2);
  if (!digits.empty()) {
    const std::size_t unit = std::string_view("kMGT").find(digits.back() == 'K' ? 'k' : digits.back());
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(unit) + 1);
      digits.remove_suffix(1);
    }
  }
  const std::uint64_t n = parse_number(option, digits, text);
  if (n > (std::uint64_t{1} << 62) >> shift) throw usage_error(option + " is \"" + text + "\", which is too large");
  return n << shift;
}

bit_range parse_bit_range(const std::string& option, const std::string& text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string::npos) {
    const std::uint64_t n = parse_number(option, text, text);
    if (n < 1 || n > 64) throw usage_error(option + " is 1 to 64 bits, not " + text);
    return {0, static_cast<unsigned>(n - 1)};
  }
  const std::string_view digits = text;
  const std::uint64_t first = parse_number(option, digits.substr(0, dash), text),
                      last = parse_number(option, digits.substr(dash + 1), text);
  if (first > last || last > 63)
    throw usage_error(option + " is \"" + text + "\", which is not a range of the bits 0 to 63; use FIRST-LAST, such as 2-11");
  return {static_cast<unsigned>(first), static_cast<unsigned>(last)};
}

std::optional<shard_size> parse_shard(const std::string& option, const std::string& text) {
  if (text.empty()) return {};
  shard_size size;
  if (text == "none") return size;
  if (text.find_first_of(",x") == std::string::npos) {
    size.bytes = parse_bytes(option, text);
    if (size.bytes == 0) throw usage_error(option + " is 0 bytes; use a size such as 64M, or a shape such as 1000x1000");
    return size;
  }
  size.shape = parse_shape(option, text);
  return size;
}

std::vector<std::uint64_t> parse_shape(const std::string& option, const std::string& text) {
  std::vector<std::uint64_t> shape;
  for (std::string_view remaining = text; !remaining.empty();) {
    const std::string_view extent = remaining.substr(0, remaining.find_first_of(",x"));
    shape.push_back(parse_number(option, extent, text));
    if (shape.back() == 0) throw usage_error(option + " is \"" + text + "\"; extents are at least 1");
    remaining.remove_prefix(std::min(remaining.size(), extent.size() + 1));
  }
  return shape;
}

dimension_chunks parse_dimension_chunks(const std::string& option, const std::string& text) {
  dimension_chunks chunks;
  const std::size_t equals = text.rfind('=');
  if (equals != std::string::npos) {
    chunks.pattern = text.substr(0, equals);
    if (chunks.pattern.empty()) throw usage_error(option + " is \"" + text + "\", with no pattern in front of the =");
  }
  for (std::string_view remaining = std::string_view(text).substr(equals == std::string::npos ? 0 : equals + 1);;) {
    const std::string_view part = remaining.substr(0, remaining.find(','));
    const std::size_t colon = part.rfind(':');
    if (colon == std::string_view::npos || colon == 0) {
      throw usage_error(option + " is \"" + text + "\", in which \"" + std::string(part) +
                        "\" is not DIMENSION:LENGTH; use a form such as time:768,lat:-1 or t2m=time:768");
    }
    const std::string_view digits = part.substr(colon + 1);
    const std::uint64_t length = digits == "-1" ? 0 : parse_number(option, digits, text);
    if (length == 0 && digits != "-1")
      throw usage_error(option + " is \"" + text + "\"; lengths are at least 1, or -1 for the whole dimension");
    chunks.lengths.push_back({std::string(part.substr(0, colon)), length});
    if (part.size() == remaining.size()) return chunks;
    remaining.remove_prefix(part.size() + 1);
  }
}

}  // namespace zarrbits::command
