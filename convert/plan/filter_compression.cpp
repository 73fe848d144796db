// SPDX-License-Identifier: BSL-1.0
#include "convert/plan/filter_compression.hpp"

#include "hdf5/filter_table.hpp"
#include "metadata/codec_id.hpp"

#include <algorithm>

namespace zarrbits::conversion {

using metadata::codec_id;
using metadata::codec_json;

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
