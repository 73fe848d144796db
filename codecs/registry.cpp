// SPDX-License-Identifier: BSL-1.0
#include "codecs/registry.hpp"

#include "compressors/blosc.hpp"
#include "compressors/bzip2.hpp"
#include "compressors/crc32c.hpp"
#include "compressors/deflate.hpp"
#include "compressors/fletcher32.hpp"
#include "compressors/lz4.hpp"
#include "compressors/shuffle.hpp"
#include "compressors/zstd.hpp"
#include "zarr/read/chunk_decoder.hpp"
#include "zarr/read/store_reader.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace zarrbits::codecs {

using compressors::buffer;
using nlohmann::json;
using zarr::store_error;

namespace {

using encoded_bytes = std::span<const std::byte>;

constexpr std::size_t checksum_bytes = 4;

// Calls `decompress`, with the errors of a store.
template <class Decompress>
buffer decompressed(const char* sentence, const Decompress& decompress) {
  try {
    return decompress();
  } catch (const compressors::limit_exceeded&) {
    throw zarr::size_limit_exceeded();
  } catch (const compressors::corrupt_chunk&) {
    throw store_error(sentence);
  }
}

buffer decode_gzip(encoded_bytes in, const bytes_settings&, output_size size) {
  return decompressed("a chunk is not a complete gzip stream",
                      [&] { return compressors::decompress_gzip_up_to(in, size.likely, size.max); });
}

buffer decode_zlib(encoded_bytes in, const bytes_settings&, output_size size) {
  return decompressed("a chunk is not a complete zlib stream",
                      [&] { return compressors::decompress_zlib_up_to(in, size.likely, size.max); });
}

buffer decode_bz2(encoded_bytes in, const bytes_settings&, output_size size) {
  return decompressed("a chunk is not a complete bzip2 stream",
                      [&] { return compressors::decompress_bzip2_streams_up_to(in, size.max); });
}

buffer decode_zstd(encoded_bytes in, const bytes_settings&, output_size size) {
  try {
    return compressors::decompress_zstd_up_to(in, size.likely, size.max);
  } catch (const compressors::limit_exceeded&) {
    throw zarr::size_limit_exceeded();
  } catch (const compressors::truncated_chunk&) {
    throw store_error("a chunk's zstd frame ends too early");
  } catch (const compressors::corrupt_chunk& e) {
    throw store_error(std::string("a chunk is not a zstd frame: ") + e.what());
  }
}

buffer decode_blosc(encoded_bytes in, const bytes_settings&, output_size size) {
  std::size_t declared = 0;
  try {
    declared = compressors::blosc_size(in);
  } catch (const compressors::corrupt_chunk&) {
    throw store_error("a chunk is not a blosc buffer");
  }
  if (declared > size.max) throw zarr::size_limit_exceeded();
  return decompressed("a chunk's blosc buffer cannot be decompressed",
                      [&] { return compressors::decompress_blosc(in, declared); });
}

buffer decode_lz4(encoded_bytes in, const bytes_settings&, output_size size) {
  if (in.size() <= 4) throw store_error("a chunk is shorter than the length that LZ4 begins with, and a block");
  return decompressed("a chunk's LZ4 block cannot be decompressed",
                      [&] { return compressors::decompress_lz4_numcodecs_frame(in, size.max); });
}

bytes_settings parse_shuffle(const json& configuration) {
  const json size = configuration.value("elementsize", json());
  if (!size.is_number_unsigned() || size.get<std::uint64_t>() == 0)
    throw store_error("the elementsize of numcodecs.shuffle is not a size");
  return {.element = size.get<std::size_t>()};
}

buffer decode_shuffle(encoded_bytes in, const bytes_settings& settings, output_size) {
  // HDF5 does not move a part of an element; readers of Zarr refuse it
  if (in.size() % settings.element != 0) {
    throw store_error("a chunk has " + std::to_string(in.size()) +
                      " bytes before numcodecs.shuffle, which takes whole elements of " + std::to_string(settings.element) +
                      " only; readers refuse it");
  }
  buffer out(in.size());
  compressors::unshuffle(in, out.data(), settings.element);
  return out;
}

std::uint32_t little_endian(encoded_bytes four) {
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < checksum_bytes; ++i) n |= std::to_integer<std::uint32_t>(four[i]) << (8 * i);
  return n;
}

encoded_bytes check_fletcher32(encoded_bytes in, const bytes_settings&) {
  if (in.size() < checksum_bytes) throw store_error("a chunk is shorter than its checksum");
  const auto content = in.first(in.size() - checksum_bytes);
  if (compressors::fletcher32(content) != little_endian(in.last(checksum_bytes)))
    throw store_error("the fletcher32 checksum of a chunk is wrong");
  return content;
}

bytes_settings parse_crc32c(const json& configuration) {
  const json location = configuration.value("location", json());
  if (!location.is_null() && location != "start" && location != "end")
    throw store_error("the location of numcodecs.crc32c is neither start nor end");
  return {.at_start = location == "start"};
}

encoded_bytes check_crc32c(encoded_bytes in, const bytes_settings& settings) {
  if (in.size() < checksum_bytes) throw store_error("a chunk is shorter than its checksum");
  const std::size_t size = in.size() - checksum_bytes;
  const auto content = settings.at_start ? in.last(size) : in.first(size);
  const auto checksum = settings.at_start ? in.first(checksum_bytes) : in.last(checksum_bytes);
  if (compressors::crc32c(content) != little_endian(checksum)) throw store_error("the crc32c checksum of a chunk is wrong");
  return content;
}

// ids of the filters in HDF5 files
constexpr int deflate = 1, shuffle = 2, fletcher32 = 3, bzip2 = 307, blosc = 32001, lz4 = 32004, zstd = 32015;

constexpr known_codec table[] = {
    {.name = "transpose", .kind = codec_kind::array_to_array, .make = make_transpose},
    {.name = "numcodecs.delta", .kind = codec_kind::array_to_array, .make = make_array_filter},
    {.name = "numcodecs.fixedscaleoffset", .kind = codec_kind::array_to_array, .make = make_array_filter},
    {.name = "numcodecs.quantize", .kind = codec_kind::array_to_array, .make = make_array_filter},
    {.name = "numcodecs.astype", .kind = codec_kind::array_to_array, .make = make_array_filter},
    {.name = "numcodecs.bitround", .kind = codec_kind::array_to_array, .make = make_array_filter},
    {.name = "numcodecs.categorize", .kind = codec_kind::array_to_array, .make = make_categorize},

    {.name = "bytes", .kind = codec_kind::array_to_bytes},
    {.name = "endian", .kind = codec_kind::array_to_bytes},
    {.name = "packbits", .kind = codec_kind::array_to_bytes},
    {.name = "numcodecs.packbits", .kind = codec_kind::array_to_bytes},
    {.name = "vlen-utf8", .kind = codec_kind::array_to_bytes, .content = chunk_content::strings},
    {.name = "vlen-bytes", .kind = codec_kind::array_to_bytes, .content = chunk_content::strings},
    {.name = "sharding_indexed", .kind = codec_kind::array_to_bytes, .content = chunk_content::shards},

    {.name = "gzip", .kind = codec_kind::bytes_to_bytes, .hdf5_filter = deflate, .decode = decode_gzip},
    {.name = "numcodecs.zlib", .kind = codec_kind::bytes_to_bytes, .hdf5_filter = deflate, .decode = decode_zlib},
    {.name = "zstd", .kind = codec_kind::bytes_to_bytes, .hdf5_filter = zstd, .decode = decode_zstd},
    {.name = "blosc", .kind = codec_kind::bytes_to_bytes, .hdf5_filter = blosc, .decode = decode_blosc},
    {.name = "numcodecs.bz2", .kind = codec_kind::bytes_to_bytes, .hdf5_filter = bzip2, .decode = decode_bz2},
    {.name = "numcodecs.lz4", .kind = codec_kind::bytes_to_bytes, .hdf5_filter = lz4, .decode = decode_lz4},
    {.name = "numcodecs.shuffle",
     .kind = codec_kind::bytes_to_bytes,
     .hdf5_filter = shuffle,
     .parse = parse_shuffle,
     .decode = decode_shuffle,
     .added_bytes = 0},
    {.name = "numcodecs.fletcher32",
     .kind = codec_kind::bytes_to_bytes,
     .hdf5_filter = fletcher32,
     .check = check_fletcher32,
     .added_bytes = checksum_bytes},
    {.name = "crc32c", .kind = codec_kind::bytes_to_bytes, .check = check_crc32c, .added_bytes = checksum_bytes},
    {.name = "numcodecs.crc32c",
     .kind = codec_kind::bytes_to_bytes,
     .parse = parse_crc32c,
     .check = check_crc32c,
     .added_bytes = checksum_bytes},
};

}  // namespace

std::span<const known_codec> known_codecs() { return table; }

const known_codec* find_codec(std::string_view name) {
  const auto entry = std::find_if(std::begin(table), std::end(table), [&](const known_codec& c) { return c.name == name; });
  return entry == std::end(table) ? nullptr : entry;
}

bool is_bytes_to_bytes(std::string_view name) {
  const known_codec* const codec = find_codec(name);
  return codec && codec->kind == codec_kind::bytes_to_bytes;
}

bool is_array_filter(std::string_view name) {
  const known_codec* const codec = find_codec(name);
  return codec && codec->kind == codec_kind::array_to_array && codec->make != make_transpose;
}

}  // namespace zarrbits::codecs
