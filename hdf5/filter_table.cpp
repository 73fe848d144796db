// SPDX-License-Identifier: BSL-1.0
#include "hdf5/filter_table.hpp"

#include "compressors/bitshuffle.hpp"
#include "compressors/blosc.hpp"
#include "compressors/bzip2.hpp"
#include "compressors/deflate.hpp"
#include "compressors/fletcher32.hpp"
#include "compressors/lz4.hpp"
#include "compressors/lzf.hpp"
#include "compressors/lzo.hpp"
#include "compressors/nbit.hpp"
#include "compressors/scaleoffset.hpp"
#include "compressors/shuffle.hpp"
#include "compressors/zstd.hpp"
#include "hdf5/zarrbits_filters.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace zarrbits::hdf5 {

namespace {

using encoded_bytes = std::span<const std::byte>;

compressors::buffer undo_checksum(const filter&, compressors::buffer in, size_before) {
  compressors::drop_fletcher32(in);
  return in;
}

int level_in_parameters(const filter& f, int otherwise) { return f.values.empty() ? otherwise : static_cast<int>(f.values[0]); }

// The filter's parameters: two versions, the type size, the size of a chunk, level, shuffle, compressor.
compressors::buffer encode_blosc(const filter& f, compressors::buffer in) {
  const auto parameter = [&](std::size_t i, unsigned otherwise) { return f.values.size() > i ? f.values[i] : otherwise; };
  const unsigned typesize = parameter(2, 1), level = parameter(4, 5), shuffle = parameter(5, 1), compressor = parameter(6, 0);
  if (typesize == 0 || level > 9 || shuffle >= compressors::blosc_shuffle_names.size() ||
      compressor >= compressors::blosc_compressor_names.size())
    throw compressors::corrupt_chunk("filter blosc: parameters that this version does not know");
  return compressors::blosc_buffer(in, typesize, static_cast<int>(level), static_cast<int>(shuffle),
                                   std::string(compressors::blosc_compressor_names[compressor]));
}

// nbit and scaleoffset make as many elements as their parameters say, of a size that these say.
std::size_t size_in_parameters(const filter& f) {
  return f.values.size() > 4 ? static_cast<std::size_t>(std::uint64_t{f.values[2]} * f.values[4]) : 0;
}

constexpr known_filter table[] =
    {
        {.id = H5Z_FILTER_DEFLATE,
         .name = "deflate",
         .role = known_filter::compresses,
         .undo =
             [](const filter&, compressors::buffer in, size_before size) {
  return size.exact ? compressors::decompress_zlib(in, size.bytes) : compressors::decompress_zlib_up_to(in, size.bytes);
         },
         .apply = [](const filter& f,
                     compressors::buffer in) { return compressors::zlib_stream(in, level_in_parameters(f, 6)); }},
        {.id = H5Z_FILTER_SHUFFLE,
         .name = "shuffle",
         .role = known_filter::rearranges,
         .undo = [](const filter& f, compressors::buffer in,
                    size_before) { return compressors::unshuffle(std::move(in), f.values.at(0)); },
         .supports = [](const filter& f, const type_description&) { return f.values.size() == 1; },
         .apply = [](const filter& f, compressors::buffer in) { return compressors::shuffled(std::move(in), f.values.at(0)); }},
        {.id = H5Z_FILTER_FLETCHER32,
         .name = "fletcher32",
         .role = known_filter::checks,
         .undo = undo_checksum,
         .apply =
             [](const filter&, compressors::buffer in) {
  compressors::append_fletcher32(in);
  return in;
         }},
                       {.id = H5Z_FILTER_SZIP, .name = "szip", .role = known_filter::compresses},
                       {.id = H5Z_FILTER_NBIT,
                        .name = "nbit",
                        .role = known_filter::compresses,
                        .undo = [](const filter& f, compressors::buffer in,
                                   size_before size) { return compressors::decode_nbit(f.values, std::move(in), size.bytes); },
                        .declared_size = [](const filter& f, encoded_bytes) { return size_in_parameters(f); }},
                       {.id = H5Z_FILTER_SCALEOFFSET,
                        .name = "scaleoffset",
                        .role = known_filter::compresses,
                        .undo =
                            [](const filter& f, compressors::buffer in, size_before size) {
  return compressors::decode_scaleoffset(f.values, std::move(in), size.bytes);
                        },
                        .declared_size = [](const filter& f, encoded_bytes) { return size_in_parameters(f); }},
    {.id = bzip2_filter,
     .role = known_filter::compresses,
     .undo =
         [](const filter&, compressors::buffer in, size_before size) {
  return size.exact ? compressors::decompress_bzip2(in, size.bytes) : compressors::decompress_bzip2_up_to(in, size.bytes);
     },
     .apply = [](const filter& f, compressors::buffer in) { return compressors::bzip2_stream(in, level_in_parameters(f, 9)); },
     .registered_name = "bzip2"},
    {.id = lzo_filter,
     .role = known_filter::compresses,
     .undo =
         [](const filter&, compressors::buffer in, size_before size) {
  return size.exact ? compressors::decompress_lzo(in, size.bytes) : compressors::decompress_lzo_up_to(in, size.bytes);
     },
     .registered_name = "lzo"},
    {.id = lzf_filter,
     .role = known_filter::compresses,
     .undo = [](const filter&, compressors::buffer in, size_before size) { return compressors::decompress_lzf(in, size.bytes); },
     .apply = [](const filter&, compressors::buffer in) { return compressors::lzf_block(in); },
     .registered_name = "lzf"},
    {.id = lz4_filter,
     .role = known_filter::compresses,
     .undo = [](const filter&, compressors::buffer in, size_before size) { return compressors::decompress_lz4(in, size.bytes); },
     .declared_size = [](const filter&, encoded_bytes in) { return compressors::lz4_size(in); },
     .apply = [](const filter&, compressors::buffer in) { return compressors::lz4_hdf5_frame(in); },
     .registered_name = "lz4"},
    {.id = bitshuffle_filter,
     .role = known_filter::compresses,
     .undo = [](const filter& f, compressors::buffer in,
                size_before size) { return compressors::decode_bitshuffle(f.values, in, size.bytes); },
     .supports = [](const filter& f, const type_description&) { return compressors::is_supported_bitshuffle(f.values); },
     .declared_size = [](const filter& f, encoded_bytes in) { return compressors::bitshuffle_size(f.values, in); },
     .apply = [](const filter& f, compressors::buffer in) { return compressors::encode_bitshuffle(f.values, in); },
     .registered_name = "bitshuffle"},
    {.id = blosc_filter,
     .role = known_filter::compresses,
     .undo = [](const filter&, compressors::buffer in,
                size_before size) { return compressors::decompress_blosc(in, size.bytes); },
     .declared_size = [](const filter&, encoded_bytes in) { return compressors::blosc_size(in); },
     .apply = encode_blosc,
     .registered_name = "blosc"},
    {.id = zstd_filter,
     .role = known_filter::compresses,
     .undo = [](const filter&, compressors::buffer in, size_before size) { return compressors::decompress_zstd(in, size.bytes); },
     .declared_size = [](const filter&, encoded_bytes in) { return compressors::zstd_size(in); },
     .apply = [](const filter& f, compressors::buffer in) { return compressors::zstd_frame(in, level_in_parameters(f, 3)); },
     .registered_name = "zstd"},
    {.id = packbits_filter,
     .name = "packbits",
     .role = known_filter::rearranges,
     .undo_typed = undo_packbits,
     .supports = supports_packbits,
     .registered_name = "packbits"},
    {.id = bytes_filter,
     .name = "bytes",
     .role = known_filter::rearranges,
     .undo_typed = undo_bytes,
     .supports = [](const filter&, const type_description& type) { return supports_bytes(type); },
     .registered_name = "bytes"},
    };
static_assert(std::size(table) <= max_known_filters);

}  // namespace

std::span<const known_filter> known_filters() { return table; }

const known_filter* find_filter(H5Z_filter_t id) {
  const auto entry = std::find_if(std::begin(table), std::end(table), [&](const known_filter& k) { return k.id == id; });
  return entry == std::end(table) ? nullptr : entry;
}

bool is_compression(const filter& f) {
  const known_filter* entry = find_filter(f.id);
  return !entry || entry->role == known_filter::compresses;
}

std::string filter_name(const filter& f) {
  const known_filter* entry = find_filter(f.id);
  if (entry && entry->name) return entry->name;
  return std::to_string(f.id) + (f.name.empty() ? "" : " (" + text::escape_name(f.name) + ")");
}

}  // namespace zarrbits::hdf5
