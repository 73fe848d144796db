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
#include <utility>

namespace zarrbits::codecs {

using compressors::buffer;
using metadata::codec_id;
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

int integer_in(const json& configuration, const char* key, int otherwise, int min_value, int max_value) {
  const auto entry = configuration.find(key);
  if (entry == configuration.end() || !entry->is_number_integer()) return otherwise;
  if (entry->is_number_unsigned() && entry->get<std::uint64_t>() > static_cast<std::uint64_t>(max_value)) return max_value;
  return static_cast<int>(std::clamp<std::int64_t>(entry->get<std::int64_t>(), min_value, max_value));
}

// The level of an encoder: `otherwise` if the configuration has none.
template <int otherwise, int min_level, int max_level>
encoder_settings parse_level(const json& configuration, std::size_t) {
  return {.level = integer_in(configuration, "level", otherwise, min_level, max_level)};
}

encoder_settings parse_shuffle_encoder(const json& configuration, std::size_t) {
  return {.element = static_cast<std::size_t>(integer_in(configuration, "elementsize", 4, 1, 1 << 30))};
}

encoder_settings parse_blosc_encoder(const json& configuration, std::size_t element) {
  const json shuffle = configuration.value("shuffle", json("shuffle")), inside = configuration.value("cname", json("lz4"));
  encoder_settings s;
  s.level = integer_in(configuration, "clevel", 5, 0, 9);
  s.element = static_cast<std::size_t>(integer_in(configuration, "typesize", static_cast<int>(element), 1, 1 << 30));
  s.shuffle = shuffle == compressors::blosc_shuffle_names[0] ? 0 : shuffle == compressors::blosc_shuffle_names[2] ? 2 : 1;
  s.inside = inside.is_string() ? inside.get<std::string>() : "";
  const auto& usable = compressors::blosc_compressor_names;
  if (std::find(usable.begin(), usable.end(), s.inside) == usable.end())
    throw error(errc::unsupported, "chunks with blosc and the compressor \"" + s.inside + "\" cannot be encoded");
  return s;
}

buffer encode_gzip(buffer bytes, const encoder_settings& s) { return compressors::gzip_member(bytes, s.level); }
buffer encode_zlib(buffer bytes, const encoder_settings& s) { return compressors::zlib_stream(bytes, s.level); }
buffer encode_zstd(buffer bytes, const encoder_settings& s) { return compressors::zstd_frame(bytes, s.level); }
buffer encode_bz2(buffer bytes, const encoder_settings& s) { return compressors::bzip2_stream(bytes, s.level); }
buffer encode_lz4(buffer bytes, const encoder_settings&) { return compressors::lz4_numcodecs_frame(bytes); }
buffer encode_shuffle(buffer bytes, const encoder_settings& s) { return compressors::shuffled(std::move(bytes), s.element); }
buffer encode_blosc(buffer bytes, const encoder_settings& s) {
  return compressors::blosc_buffer(bytes, compressors::blosc_typesize(s.element), s.level, s.shuffle, s.inside);
}
buffer append_fletcher32(buffer bytes, const encoder_settings&) {
  compressors::append_fletcher32(bytes);
  return bytes;
}
buffer append_crc32c(buffer bytes, const encoder_settings&) {
  compressors::append_crc32c(bytes);
  return bytes;
}

// ids of the filters in HDF5 files
constexpr int deflate = 1, shuffle = 2, fletcher32 = 3, bzip2 = 307, blosc = 32001, lz4 = 32004, zstd = 32015;

constexpr known_codec table[] = {
    {.id = codec_id::transpose, .kind = codec_kind::array_to_array, .make = make_transpose},
    {.id = codec_id::delta, .kind = codec_kind::array_to_array, .make = make_array_filter},
    {.id = codec_id::fixed_scale_offset, .kind = codec_kind::array_to_array, .make = make_array_filter},
    {.id = codec_id::quantize, .kind = codec_kind::array_to_array, .make = make_array_filter},
    {.id = codec_id::as_type, .kind = codec_kind::array_to_array, .make = make_array_filter},
    {.id = codec_id::bit_round, .kind = codec_kind::array_to_array, .make = make_array_filter},
    {.id = codec_id::categorize, .kind = codec_kind::array_to_array, .make = make_categorize},

    {.id = codec_id::bytes, .kind = codec_kind::array_to_bytes},
    {.id = codec_id::packbits, .kind = codec_kind::array_to_bytes},
    {.id = codec_id::numcodecs_packbits, .kind = codec_kind::array_to_bytes},
    {.id = codec_id::vlen_utf8, .kind = codec_kind::array_to_bytes, .content = chunk_content::strings},
    {.id = codec_id::vlen_bytes, .kind = codec_kind::array_to_bytes, .content = chunk_content::strings},
    {.id = codec_id::sharding, .kind = codec_kind::array_to_bytes, .content = chunk_content::shards},

    {.id = codec_id::gzip,
     .kind = codec_kind::bytes_to_bytes,
     .hdf5_filter = deflate,
     .decode = decode_gzip,
     .parse_encoder = parse_level<5, 0, 9>,
     .encode = encode_gzip},
    {.id = codec_id::zlib,
     .kind = codec_kind::bytes_to_bytes,
     .hdf5_filter = deflate,
     .decode = decode_zlib,
     .parse_encoder = parse_level<1, 0, 9>,
     .encode = encode_zlib},
    {.id = codec_id::zstd,
     .kind = codec_kind::bytes_to_bytes,
     .hdf5_filter = zstd,
     .decode = decode_zstd,
     .parse_encoder = parse_level<0, -100, 22>,
     .encode = encode_zstd},
    {.id = codec_id::blosc,
     .kind = codec_kind::bytes_to_bytes,
     .hdf5_filter = blosc,
     .decode = decode_blosc,
     .parse_encoder = parse_blosc_encoder,
     .encode = encode_blosc},
    {.id = codec_id::bz2,
     .kind = codec_kind::bytes_to_bytes,
     .hdf5_filter = bzip2,
     .decode = decode_bz2,
     .parse_encoder = parse_level<1, 1, 9>,
     .encode = encode_bz2},
    {.id = codec_id::lz4, .kind = codec_kind::bytes_to_bytes, .hdf5_filter = lz4, .decode = decode_lz4, .encode = encode_lz4},
    {.id = codec_id::shuffle,
     .kind = codec_kind::bytes_to_bytes,
     .hdf5_filter = shuffle,
     .parse = parse_shuffle,
     .decode = decode_shuffle,
     .added_bytes = 0,
     .parse_encoder = parse_shuffle_encoder,
     .encode = encode_shuffle},
    {.id = codec_id::fletcher32,
     .kind = codec_kind::bytes_to_bytes,
     .hdf5_filter = fletcher32,
     .check = check_fletcher32,
     .added_bytes = checksum_bytes,
     .encode = append_fletcher32},
    {.id = codec_id::crc32c,
     .kind = codec_kind::bytes_to_bytes,
     .check = check_crc32c,
     .added_bytes = checksum_bytes,
     .encode = append_crc32c},
    {.id = codec_id::numcodecs_crc32c,
     .kind = codec_kind::bytes_to_bytes,
     .parse = parse_crc32c,
     .check = check_crc32c,
     .added_bytes = checksum_bytes},
};

}  // namespace

std::span<const known_codec> known_codecs() { return table; }

const known_codec* find_codec(codec_id id) {
  const auto entry = std::find_if(std::begin(table), std::end(table), [&](const known_codec& c) { return c.id == id; });
  return entry == std::end(table) ? nullptr : entry;
}

bool is_bytes_to_bytes(codec_id id) {
  const known_codec* const codec = find_codec(id);
  return codec && codec->kind == codec_kind::bytes_to_bytes;
}

bool is_self_describing(codec_id id) {
  const known_codec* const codec = find_codec(id);
  return codec &&
         (codec->kind == codec_kind::bytes_to_bytes ? codec->parse == nullptr : codec->content == chunk_content::strings);
}

}  // namespace zarrbits::codecs
