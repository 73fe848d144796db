// SPDX-License-Identifier: BSL-1.0
#include "convert/plan/compression.hpp"

#include "convert/codecs/blosc.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <charconv>

namespace zarrbits::conversion {

namespace {

constexpr const char* blosc_names[] = {"blosclz", "lz4",  "lz4hc",
                                       "snappy",  "zlib", "zstd"};  // in the order of the filter's numbers
constexpr const char* shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};

[[noreturn]] void refuse(const std::string& text) {
  throw convert_error("\"" + text +
                      "\" is no compression; give none, gzip:LEVEL (1-9), zstd:LEVEL (1-22), or "
                      "blosc:NAME:LEVEL:SHUFFLE with lz4, lz4hc, zlib or zstd, 1-9, and noshuffle, shuffle or bitshuffle");
}

}  // namespace

int bzip2_level(const filter& f) {
  return f.values.empty() || f.values[0] < 1 || f.values[0] > 9 ? 9 : static_cast<int>(f.values[0]);
}

int deflate_level(const filter& f) { return f.values.empty() ? 6 : static_cast<int>(std::min(f.values[0], 9U)); }

compression compression_of(const filter& f) {
  const auto at = [&](std::size_t i, unsigned other) { return i < f.values.size() ? f.values[i] : other; };
  if (f.id == zstd_filter) return {compression::zstd, at(0, 3) > 22 ? 3 : static_cast<int>(at(0, 3)), {}, 0};
  return {compression::blosc, static_cast<int>(std::min(at(4, 5), 9U)), blosc_names[at(6, 0) < 6 ? at(6, 0) : 0],
          static_cast<int>(std::min(at(5, 1), 2U))};
}

compression parse_compression(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ':') words.emplace_back();
    else words.back() += c;
  }
  const auto level = [&](std::size_t i, int most, int usual) {
    if (i >= words.size()) return usual;
    int n = 0;
    const auto [end, error] = std::from_chars(words[i].data(), words[i].data() + words[i].size(), n);
    if (error != std::errc() || end != words[i].data() + words[i].size() || n < 1 || n > most) refuse(text);
    return n;
  };
  compression c;
  if (words[0] == "none" && words.size() == 1) return c;
  if (words[0] == "gzip" && words.size() <= 2) return {compression::gzip, level(1, 9, 6), {}, 0};
  if (words[0] == "zstd" && words.size() <= 2) return {compression::zstd, level(1, 22, 3), {}, 0};
  if (words[0] != "blosc" || words.size() > 4) refuse(text);
  c.kind = compression::blosc;
  c.name = words.size() > 1 ? words[1] : "zstd";
  if (c.name != "lz4" && c.name != "lz4hc" && c.name != "zlib" && c.name != "zstd") refuse(text);
  c.level = level(2, 9, 5);
  c.shuffle = 1;
  if (words.size() > 3) {
    const auto found = std::find(std::begin(shuffles), std::end(shuffles), words[3]);
    if (found == std::end(shuffles)) refuse(text);
    c.shuffle = static_cast<int>(found - std::begin(shuffles));
  }
  return c;
}

bool fits(const compression& c, std::uint64_t bytes) { return c.kind != compression::blosc || bytes <= most_of_blosc; }

void append_codec(json& codecs, const compression& c, std::size_t typesize) {
  switch (c.kind) {
    case compression::none: break;
    case compression::gzip: codecs.push_back({{"name", "gzip"}, {"configuration", {{"level", c.level}}}}); break;
    case compression::zstd:
      codecs.push_back({{"name", "zstd"}, {"configuration", {{"level", c.level}, {"checksum", false}}}});
      break;
    case compression::blosc:
      codecs.push_back({{"name", "blosc"},
                        {"configuration",
                         {{"typesize", blosc_typesize(typesize)},
                          {"cname", c.name},
                          {"clevel", c.level},
                          {"shuffle", shuffles[c.shuffle]},
                          {"blocksize", 0}}}});
      break;
  }
}

std::optional<json> native_codecs(const pipeline& p) {
  json codecs = json::array();
  for (const filter& f : p.filters) {
    switch (f.id) {
      case H5Z_FILTER_DEFLATE:
        codecs.push_back({{"name", "numcodecs.zlib"}, {"configuration", {{"level", deflate_level(f)}}}});
        break;
      case H5Z_FILTER_SHUFFLE:
        if (f.values.size() != 1 || f.values[0] == 0) return {};
        codecs.push_back({{"name", "numcodecs.shuffle"}, {"configuration", {{"elementsize", f.values[0]}}}});
        break;
      case H5Z_FILTER_FLETCHER32: codecs.push_back({{"name", "numcodecs.fletcher32"}, {"configuration", json::object()}}); break;
      case bzip2_filter: codecs.push_back({{"name", "numcodecs.bz2"}, {"configuration", {{"level", bzip2_level(f)}}}}); break;
      case lz4_filter:
        if (&f != &p.filters.back()) return {};  // its frame changes, so nothing may stand around it
        codecs.push_back({{"name", "numcodecs.lz4"}, {"configuration", {{"acceleration", 1}}}});
        break;
      case zstd_filter: append_codec(codecs, compression_of(f), 1); break;
      case blosc_filter:
        if (f.values.size() < 4 || (f.values.size() > 6 && f.values[6] == 3))
          return {};  // snappy: Zarr readers are built without it
        append_codec(codecs, compression_of(f), f.values[2]);
        break;
      default: return {};
    }
  }
  return codecs;
}

}  // namespace zarrbits::conversion
