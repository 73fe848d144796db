// SPDX-License-Identifier: BSL-1.0
#include "convert/pipeline/compression.hpp"

#include "compressors/blosc.hpp"
#include "compressors/deflate.hpp"
#include "compressors/zstd.hpp"
#include "metadata/codec_id.hpp"

namespace zarrbits::conversion {

namespace {

using metadata::codec_id;
using metadata::codec_json;

constexpr codec_id codecs_of_kinds[] = {codec_id::unknown, codec_id::gzip, codec_id::zstd, codec_id::blosc};
constexpr int default_levels[] = {0, 6, 3, 5}, max_levels[] = {0, 9, 22, 9};

template <class E>
std::size_t number(E e) noexcept {
  return static_cast<std::size_t>(e);
}

std::string name_of(compressor kind) {
  return kind == compressor::none ? "none" : std::string(metadata::codec_name(codecs_of_kinds[number(kind)]));
}

}  // namespace

void check_compression(const compression& c) {
  const int highest = max_levels[number(c.kind)];
  if (c.level < 0 || c.level > highest) {
    throw zarrbits::error(errc::invalid_option, std::to_string(c.level) + " is not a level of " + name_of(c.kind) +
                                                    (highest > 0 ? "; use 1 to " + std::to_string(highest) : "; leave it out"));
  }
  if (c.kind == compressor::blosc && (c.inside == blosc_compressor::blosclz || c.inside == blosc_compressor::snappy)) {
    throw zarrbits::error(errc::invalid_option, std::string("readers of Zarr are built without blosc's ") + to_string(c.inside) +
                                                    "; use lz4, lz4hc, zlib or zstd");
  }
}

compression with_level(compression c) {
  if (c.level == 0) c.level = default_levels[number(c.kind)];
  return c;
}

std::string text_of(const compression& c) {
  std::string text = name_of(c.kind);
  if (c.kind == compressor::blosc) text += std::string(":") + to_string(c.inside);
  if (c.kind != compressor::none) text += ":" + std::to_string(c.level);
  if (c.kind == compressor::blosc) (text += ":") += compressors::blosc_shuffle_names[number(c.shuffle)];
  return text;
}

const char* to_string(blosc_compressor c) noexcept { return compressors::blosc_compressor_names[number(c)].data(); }

bool fits(const compression& c, std::uint64_t bytes) {
  return c.kind != compressor::blosc || bytes <= compressors::max_blosc_bytes;
}

std::uint64_t max_compressed_size(const compression& c, std::uint64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  switch (c.kind) {
    case compressor::gzip: return compressors::max_gzip_size(size);
    case compressor::zstd: return compressors::max_zstd_size(size);
    case compressor::blosc: return compressors::max_blosc_size(size);
    case compressor::none: break;
  }
  return bytes;
}

void append_codec(text::json& codecs, const compression& c, std::size_t typesize) {
  switch (c.kind) {
    case compressor::none: break;
    case compressor::gzip: codecs.push_back(codec_json(codec_id::gzip, {{"level", c.level}})); break;
    case compressor::zstd: codecs.push_back(codec_json(codec_id::zstd, {{"level", c.level}, {"checksum", false}})); break;
    case compressor::blosc:
      codecs.push_back(codec_json(codec_id::blosc, {{"typesize", compressors::blosc_typesize(typesize)},
                                                    {"cname", to_string(c.inside)},
                                                    {"clevel", c.level},
                                                    {"shuffle", compressors::blosc_shuffle_names[number(c.shuffle)]},
                                                    {"blocksize", 0}}));
      break;
  }
}

}  // namespace zarrbits::conversion
