// SPDX-License-Identifier: BSL-1.0
#include "convert/plan/codec_match.hpp"

#include "metadata/named_configuration.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace zarrbits::conversion {

namespace {

// The parts of a codec that a decoder needs: compressed chunks contain the rest.
text::json for_decoders(const text::json& codec) {
  auto [name, configuration] = metadata::read_named_configuration(codec);
  static constexpr std::array<std::string_view, 9> told_by_chunks = {"gzip",           "zstd",           "blosc",
                                                                     "numcodecs.zlib", "numcodecs.gzip", "numcodecs.bz2",
                                                                     "numcodecs.zstd", "numcodecs.lz4",  "numcodecs.blosc"};
  const bool is_self_describing = std::find(told_by_chunks.begin(), told_by_chunks.end(), name) != told_by_chunks.end();
  if (is_self_describing || name == "vlen-utf8" || name == "vlen-bytes" || name == "crc32c") configuration = text::json::object();
  return metadata::to_json({name, std::move(configuration)});
}

std::uint64_t number_in(const text::json& configuration, const char* key, std::uint64_t max_value, std::uint64_t otherwise) {
  const auto entry = configuration.find(key);
  return entry != configuration.end() && entry->is_number_unsigned() && entry->get<std::uint64_t>() <= max_value
             ? entry->get<std::uint64_t>()
             : otherwise;
}

}  // namespace

bool ends_with_crc32c(const text::json& codecs) { return codecs.size() > 1 && metadata::name_of(codecs.back()) == "crc32c"; }

bool has_native_codecs(const text::json& codecs) {
  return std::any_of(codecs.begin(), codecs.end(),
                     [](const text::json& c) { return metadata::name_of(c).starts_with("numcodecs."); });
}

bool decode_alike(const text::json& a, const text::json& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const text::json& x, const text::json& y) { return for_decoders(x) == for_decoders(y); });
}

std::optional<std::pair<compression, std::size_t>> compression_in(const text::json& codecs) {
  const std::size_t end = codecs.size() - (ends_with_crc32c(codecs) ? 1 : 0);
  if (end > 2) return {};
  std::pair<compression, std::size_t> result{{}, 1};
  if (end < 2) return result;
  const metadata::named_configuration codec = metadata::read_named_configuration(codecs[1]);
  const std::string& name = codec.name;
  const text::json& configuration = codec.configuration;
  compression& c = result.first;
  if (name == "gzip") {
    c = {compressor::gzip, static_cast<int>(number_in(configuration, "level", 9, 0))};
  } else if (name == "zstd") {
    c = {compressor::zstd, static_cast<int>(number_in(configuration, "level", 22, 0))};
  } else if (name == "blosc") {
    const auto has_value = [&](const char* key, std::string_view value) {
      return metadata::member(configuration, key) == text::json(value);
    };
    c = {compressor::blosc, static_cast<int>(number_in(configuration, "clevel", 9, 0))};
    for (const auto inside : {blosc_compressor::lz4, blosc_compressor::lz4hc, blosc_compressor::zlib}) {
      if (has_value("cname", to_string(inside))) c.inside = inside;
    }
    c.shuffle = has_value("shuffle", "shuffle")      ? blosc_shuffle::bytes
                : has_value("shuffle", "bitshuffle") ? blosc_shuffle::bits
                                                     : blosc_shuffle::none;
    result.second = static_cast<std::size_t>(number_in(configuration, "typesize", 255, 1));
  } else {
    return {};
  }
  c = with_level(c);
  return result;
}

}  // namespace zarrbits::conversion
