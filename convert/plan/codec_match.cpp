// SPDX-License-Identifier: BSL-1.0
#include "convert/plan/codec_match.hpp"

#include "codecs/registry.hpp"
#include "compressors/blosc.hpp"
#include "metadata/codec_id.hpp"
#include "metadata/named_configuration.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>

namespace zarrbits::conversion {

using metadata::codec_id;
using metadata::codec_id_in;
using metadata::number_in;

namespace {

// The parts of a codec that a decoder needs.
text::json for_decoders(const text::json& codec) {
  auto [name, configuration] = metadata::read_named_configuration(codec);
  if (codecs::is_self_describing(metadata::codec_id_of(name))) configuration = text::json::object();
  return metadata::to_json({name, std::move(configuration)});
}

}  // namespace

bool ends_with_crc32c(const text::json& codecs) { return codecs.size() > 1 && codec_id_in(codecs.back()) == codec_id::crc32c; }

bool has_native_codecs(const text::json& codecs) {
  return std::any_of(codecs.begin(), codecs.end(),
                     [](const text::json& c) { return metadata::name_of(c).starts_with(metadata::numcodecs_prefix); });
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
  const text::json configuration = metadata::configuration_of(codecs[1]);
  compression& c = result.first;
  switch (codec_id_in(codecs[1])) {
    case codec_id::gzip: c = {compressor::gzip, static_cast<int>(number_in(configuration, "level", 9, 0))}; break;
    case codec_id::zstd: c = {compressor::zstd, static_cast<int>(number_in(configuration, "level", 22, 0))}; break;
    case codec_id::blosc: {
      const text::json &shuffle = metadata::member(configuration, "shuffle"), &inside = metadata::member(configuration, "cname");
      const auto& names = compressors::blosc_shuffle_names;
      c = {compressor::blosc, static_cast<int>(number_in(configuration, "clevel", 9, 0))};
      for (const auto known : {blosc_compressor::lz4, blosc_compressor::lz4hc, blosc_compressor::zlib}) {
        if (inside == to_string(known)) c.inside = known;
      }
      c.shuffle = shuffle == names[1] ? blosc_shuffle::bytes : shuffle == names[2] ? blosc_shuffle::bits : blosc_shuffle::none;
      result.second = static_cast<std::size_t>(number_in(configuration, "typesize", 255, 1));
      break;
    }
    default: return {};
  }
  c = with_level(c);
  return result;
}

}  // namespace zarrbits::conversion
