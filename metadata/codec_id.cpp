// SPDX-License-Identifier: BSL-1.0
#include "metadata/codec_id.hpp"

#include "metadata/named_configuration.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace zarrbits::metadata {

namespace {

// A codec's present name comes before its older ones.
constexpr std::pair<std::string_view, codec_id> names[] = {
    {"transpose", codec_id::transpose},
    {"numcodecs.delta", codec_id::delta},
    {"numcodecs.fixedscaleoffset", codec_id::fixed_scale_offset},
    {"numcodecs.quantize", codec_id::quantize},
    {"numcodecs.astype", codec_id::as_type},
    {"numcodecs.bitround", codec_id::bit_round},
    {"numcodecs.categorize", codec_id::categorize},
    {"bytes", codec_id::bytes},
    {"endian", codec_id::bytes},
    {"packbits", codec_id::packbits},
    {"numcodecs.packbits", codec_id::numcodecs_packbits},
    {"vlen-utf8", codec_id::vlen_utf8},
    {"vlen-bytes", codec_id::vlen_bytes},
    {"sharding_indexed", codec_id::sharding},
    {"gzip", codec_id::gzip},
    {"numcodecs.zlib", codec_id::zlib},
    {"zstd", codec_id::zstd},
    {"blosc", codec_id::blosc},
    {"numcodecs.bz2", codec_id::bz2},
    {"numcodecs.lz4", codec_id::lz4},
    {"numcodecs.shuffle", codec_id::shuffle},
    {"numcodecs.fletcher32", codec_id::fletcher32},
    {"crc32c", codec_id::crc32c},
    {"numcodecs.crc32c", codec_id::numcodecs_crc32c},
};

}  // namespace

codec_id codec_id_of(std::string_view name) {
  const auto entry = std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return n.first == name; });
  return entry == std::end(names) ? codec_id::unknown : entry->second;
}

std::string_view codec_name(codec_id id) {
  const auto entry = std::find_if(std::begin(names), std::end(names), [&](const auto& n) { return n.second == id; });
  return entry == std::end(names) ? std::string_view() : entry->first;
}

text::json codec_json(codec_id id, text::json configuration) {
  return to_json({std::string(codec_name(id)), std::move(configuration)});
}

codec_id codec_id_in(const text::json& codec) { return codec_id_of(std::string_view(name_of(codec))); }

}  // namespace zarrbits::metadata
