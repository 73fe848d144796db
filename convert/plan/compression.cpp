// SPDX-License-Identifier: BSL-1.0
#include "convert/plan/compression.hpp"

#include "convert/hdf5/decompressors.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <blosc.h>
#include <charconv>
#include <new>
#include <zlib.h>

namespace zarrbits::conversion {

namespace {

constexpr const char* blosc_names[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};  // in the order of the filter's numbers
constexpr const char* shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};

[[noreturn]] void refuse(const std::string& text) {
  throw convert_error("\"" + text + "\" is no compression; give none, gzip:LEVEL (1-9), zstd:LEVEL (1-22), or "
                      "blosc:NAME:LEVEL:SHUFFLE with lz4, lz4hc, zlib or zstd, 1-9, and noshuffle, shuffle or bitshuffle");
}

int blosc_typesize(std::size_t size) { return size < 1 || size > 255 ? 1 : static_cast<int>(size); }

buffer zlib_stream(const buffer& bytes, int level) {
  if (bytes.size() >= 0x7FFFFFFFU) throw damaged_chunk("a chunk of 2 GiB, which zlib's readers do not take");
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  buffer out(size);
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()), level) != Z_OK) {
    throw std::bad_alloc();
  }
  out.resize(size);
  return out;
}

int bzip2_level(const filter& f) { return f.values.empty() || f.values[0] < 1 || f.values[0] > 9 ? 9 : static_cast<int>(f.values[0]); }

buffer shuffled(const buffer& in, std::size_t element) {
  if (element <= 1 || in.size() < element) return in;
  const std::size_t n = in.size() / element;
  buffer out(in);  // a last part of an element stays where it is
  for (std::size_t b = 0; b < element; ++b) {
    for (std::size_t i = 0; i < n; ++i) out[b * n + i] = in[i * element + b];
  }
  return out;
}

}  // namespace

compression compression_of(const filter& f) {
  const auto at = [&](std::size_t i, unsigned other) { return i < f.values.size() ? f.values[i] : other; };
  if (f.id == zstd_filter) return {compression::zstd, at(0, 3) > 22 ? 3 : static_cast<int>(at(0, 3)), {}, 0};
  return {compression::blosc, static_cast<int>(std::min(at(4, 5), 9U)), blosc_names[at(6, 0) < 6 ? at(6, 0) : 0], static_cast<int>(std::min(at(5, 1), 2U))};
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

bool fits(const compression& c, std::uint64_t bytes) { return c.kind != compression::blosc || bytes <= BLOSC_MAX_BUFFERSIZE; }

void append_codec(json& codecs, const compression& c, std::size_t typesize) {
  switch (c.kind) {
    case compression::none: break;
    case compression::gzip: codecs.push_back({{"name", "gzip"}, {"configuration", {{"level", c.level}}}}); break;
    case compression::zstd: codecs.push_back({{"name", "zstd"}, {"configuration", {{"level", c.level}, {"checksum", false}}}}); break;
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

buffer compress(const compression& c, buffer bytes, std::size_t typesize) {
  switch (c.kind) {
    case compression::none: return bytes;
    case compression::gzip: return gzip_member(bytes, c.level);
    case compression::zstd: return zstd_frame(bytes, c.level);
    case compression::blosc: break;
  }
  if (!fits(c, bytes.size())) throw damaged_chunk("a chunk of 2 GiB, which blosc does not take");
  buffer out(bytes.size() + BLOSC_MAX_OVERHEAD);
  // the same bytes on every machine: the block size that the library chooses would depend on its caches only for `blocksize` 0 of one thread,
  // where it is a function of level, type size and length
  const int size = blosc_compress_ctx(c.level, c.shuffle, static_cast<std::size_t>(blosc_typesize(typesize)), bytes.size(), bytes.data(), out.data(), out.size(),
                                      c.name.c_str(), 0, 1);
  if (size <= 0) return blosc_stored(bytes, typesize);  // this libblosc was built without that compressor
  out.resize(static_cast<std::size_t>(size));
  return out;
}

std::optional<json> native_codecs(const pipeline& p) {
  json codecs = json::array();
  for (const filter& f : p.filters) {
    switch (f.id) {
      case H5Z_FILTER_DEFLATE: codecs.push_back({{"name", "numcodecs.zlib"}, {"configuration", {{"level", f.values.empty() ? 6 : std::min(f.values[0], 9U)}}}}); break;
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
        if (f.values.size() < 4 || (f.values.size() > 6 && f.values[6] == 3)) return {};  // snappy: Zarr readers are built without it
        append_codec(codecs, compression_of(f), f.values[2]);
        break;
      default: return {};
    }
  }
  return codecs;
}

buffer apply_native(const pipeline& p, buffer values, std::size_t typesize) {
  for (const filter& f : p.filters) {
    switch (f.id) {
      case H5Z_FILTER_DEFLATE: values = zlib_stream(values, f.values.empty() ? 6 : static_cast<int>(std::min(f.values[0], 9U))); break;
      case H5Z_FILTER_SHUFFLE: values = shuffled(values, f.values.at(0)); break;
      case H5Z_FILTER_FLETCHER32: append_fletcher32(values); break;
      case bzip2_filter: values = bzip2_stream(values, bzip2_level(f)); break;
      case lz4_filter: values = numcodecs_lz4(values); break;
      default: values = compress(compression_of(f), std::move(values), typesize); break;
    }
  }
  return values;
}

}  // namespace zarrbits::conversion
