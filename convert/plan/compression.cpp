// SPDX-License-Identifier: BSL-1.0
#include "convert/plan/compression.hpp"

#include "compressors/blosc.hpp"
#include "compressors/deflate.hpp"
#include "compressors/zstd.hpp"
#include "hdf5/filter_table.hpp"
#include "metadata/codec_id.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>

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

int bzip2_level(const hdf5::filter& f) {
  return f.values.empty() || f.values[0] < 1 || f.values[0] > 9 ? 9 : static_cast<int>(f.values[0]);
}

int deflate_level(const hdf5::filter& f) { return f.values.empty() ? 6 : static_cast<int>(std::min(f.values[0], 9U)); }

compression compression_of(const hdf5::filter& f) {
  const auto value_or = [&](std::size_t i, unsigned fallback) { return i < f.values.size() ? f.values[i] : fallback; };
  if (f.id == hdf5::zstd_filter) return {compressor::zstd, value_or(0, 3) > 22 ? 3 : static_cast<int>(value_or(0, 3))};
  return {compressor::blosc, static_cast<int>(std::min(value_or(4, 5), 9U)),
          static_cast<blosc_compressor>(value_or(6, 0) < 6 ? value_or(6, 0) : 0),
          static_cast<blosc_shuffle>(std::min(value_or(5, 1), 2U))};
}

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

namespace {

// Blosc's level 1 is level 1 of zstd, and 4 is 7. bench/compression.py compares the sizes.
constexpr int default_zstd_level = 1, fallback_zstd_level = 4;
constexpr int default_lz4_level = 9;  // the best of LZ4: lower levels give up sooner, and are hardly faster

bool is_fast(const hdf5::filter& f) {
  if (f.id == hdf5::lz4_filter || f.id == hdf5::lzf_filter || f.id == hdf5::lzo_filter) return true;
  if (f.id == hdf5::bitshuffle_filter) return f.values.size() > 4 && f.values[4] == 2;
  return f.id == hdf5::blosc_filter && compression_of(f).inside < blosc_compressor::zlib;
}

}  // namespace

compression default_compression(const hdf5::pipeline& p, std::size_t typesize) {
  const auto shuffle = static_cast<blosc_shuffle>(p.shuffles());
  if (std::any_of(p.filters.begin(), p.filters.end(), is_fast))
    return {compressor::blosc, default_lz4_level, blosc_compressor::lz4, shuffle};
  if (shuffle != blosc_shuffle::none || typesize == 1)
    return {compressor::blosc, default_zstd_level, blosc_compressor::zstd, shuffle};
  return {compressor::blosc, default_zstd_level, blosc_compressor::zstd, blosc_shuffle::bytes};
}

std::optional<compression> fallback_compression(const compression& c) {
  if (c.kind != compressor::blosc || c.inside != blosc_compressor::zstd) return {};
  compression result = c;
  result.level = fallback_zstd_level;
  return result;
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

std::optional<text::json> native_codecs(const hdf5::pipeline& p, std::uint64_t chunk_bytes) {
  text::json codecs = text::json::array();
  std::uint64_t size = chunk_bytes;  // at the input of each filter, as long as it is the same for all chunks
  bool is_size_known = true;
  for (const hdf5::filter& f : p.filters) {
    switch (f.id) {
      case H5Z_FILTER_DEFLATE: codecs.push_back(codec_json(codec_id::zlib, {{"level", deflate_level(f)}})); break;
      case H5Z_FILTER_SHUFFLE:
        if (f.values.size() != 1 || f.values[0] == 0) return {};
        // HDF5 leaves bytes after the last whole element alone; numcodecs refuses such a chunk
        if (f.values[0] > 1 && (!is_size_known || size % f.values[0] != 0)) return {};
        codecs.push_back(codec_json(codec_id::shuffle, {{"elementsize", f.values[0]}}));
        break;
      case H5Z_FILTER_FLETCHER32:
        codecs.push_back(codec_json(codec_id::fletcher32, text::json::object()));
        size += 4;
        break;
      case hdf5::bzip2_filter: codecs.push_back(codec_json(codec_id::bz2, {{"level", bzip2_level(f)}})); break;
      case hdf5::lz4_filter:
        // its frame changes: no filter may follow, and its input has to be of the chunk's size
        if (&f != &p.filters.back() || !is_size_known || size != chunk_bytes) return {};
        codecs.push_back(codec_json(codec_id::lz4, {{"acceleration", 1}}));
        break;
      case hdf5::zstd_filter: append_codec(codecs, compression_of(f), 1); break;
      case hdf5::blosc_filter:
        if (f.values.size() < 4 || (f.values.size() > 6 && f.values[6] == 3))
          return {};  // snappy: many Zarr readers are built without it
        append_codec(codecs, compression_of(f), f.values[2]);
        break;
      default: return {};
    }
    is_size_known = is_size_known && !hdf5::is_compression(f);
  }
  return codecs;
}

}  // namespace zarrbits::conversion
