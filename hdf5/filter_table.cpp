// SPDX-License-Identifier: BSL-1.0
#include "hdf5/filter_table.hpp"

#include "compression/bitshuffle.hpp"
#include "compression/blosc.hpp"
#include "compression/bzip2.hpp"
#include "compression/deflate.hpp"
#include "compression/fletcher32.hpp"
#include "compression/lz4.hpp"
#include "compression/lzf.hpp"
#include "compression/lzo.hpp"
#include "compression/nbit.hpp"
#include "compression/scaleoffset.hpp"
#include "compression/shuffle.hpp"
#include "compression/zstd.hpp"
#include "hdf5/own_filters.hpp"
#include "text/shown.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace zarrbits::hdf5 {

namespace {

using from = std::span<const std::byte>;

compressors::buffer undo_checksum(const filter&, compressors::buffer in, size_before) {
  compressors::drop_fletcher32(in);
  return in;
}

// nbit and scaleoffset make as many elements as their parameters say, of a size that these say.
std::size_t size_in_parameters(const filter& f) {
  return f.values.size() > 4 ? static_cast<std::size_t>(std::uint64_t{f.values[2]} * f.values[4]) : 0;
}

constexpr known_filter table[] = {
    {.id = H5Z_FILTER_DEFLATE,
     .name = "deflate",
     .role = known_filter::compresses,
     .undo = [](const filter&, compressors::buffer in,
                size_before size) { return size.exact ? compressors::undo_deflate(in, size.bytes) : compressors::undo_deflate_up_to(in, size.bytes); }},
    {.id = H5Z_FILTER_SHUFFLE,
     .name = "shuffle",
     .role = known_filter::rearranges,
     .undo = [](const filter& f, compressors::buffer in, size_before) { return compressors::unshuffle(std::move(in), f.values.at(0)); },
     .knows = [](const filter& f, const type_tree&) { return f.values.size() == 1; }},
    {.id = H5Z_FILTER_FLETCHER32, .name = "fletcher32", .role = known_filter::checks, .undo = undo_checksum},
    {.id = H5Z_FILTER_SZIP, .name = "szip", .role = known_filter::compresses},
    {.id = H5Z_FILTER_NBIT,
     .name = "nbit",
     .role = known_filter::compresses,
     .undo = [](const filter& f, compressors::buffer in, size_before size) { return compressors::undo_nbit(f.values, std::move(in), size.bytes); },
     .announced = [](const filter& f, from) { return size_in_parameters(f); }},
    {.id = H5Z_FILTER_SCALEOFFSET,
     .name = "scaleoffset",
     .role = known_filter::compresses,
     .undo = [](const filter& f, compressors::buffer in, size_before size) { return compressors::undo_scaleoffset(f.values, std::move(in), size.bytes); },
     .announced = [](const filter& f, from) { return size_in_parameters(f); }},
    {.id = bzip2_filter,
     .role = known_filter::compresses,
     .undo = [](const filter&, compressors::buffer in,
                size_before size) { return size.exact ? compressors::undo_bzip2(in, size.bytes) : compressors::undo_bzip2_up_to(in, size.bytes); },
     .lent_as = "bzip2"},
    {.id = lzo_filter,
     .role = known_filter::compresses,
     .undo = [](const filter&, compressors::buffer in,
                size_before size) { return size.exact ? compressors::undo_lzo(in, size.bytes) : compressors::undo_lzo_up_to(in, size.bytes); },
     .lent_as = "lzo"},
    {.id = lzf_filter,
     .role = known_filter::compresses,
     .undo = [](const filter&, compressors::buffer in, size_before size) { return compressors::undo_lzf(in, size.bytes); },
     .lent_as = "lzf"},
    {.id = lz4_filter,
     .role = known_filter::compresses,
     .undo = [](const filter&, compressors::buffer in, size_before size) { return compressors::undo_lz4(in, size.bytes); },
     .announced = [](const filter&, from in) { return compressors::lz4_size(in); },
     .lent_as = "lz4"},
    {.id = bitshuffle_filter,
     .role = known_filter::compresses,
     .undo = [](const filter& f, compressors::buffer in, size_before size) { return compressors::undo_bitshuffle(f.values, in, size.bytes); },
     .knows = [](const filter& f, const type_tree&) { return compressors::knows_bitshuffle(f.values); },
     .announced = [](const filter& f, from in) { return compressors::bitshuffle_size(f.values, in); },
     .lent_as = "bitshuffle"},
    {.id = blosc_filter,
     .role = known_filter::compresses,
     .undo = [](const filter&, compressors::buffer in, size_before size) { return compressors::undo_blosc(in, size.bytes); },
     .announced = [](const filter&, from in) { return compressors::blosc_size(in); },
     .lent_as = "blosc"},
    {.id = zstd_filter,
     .role = known_filter::compresses,
     .undo = [](const filter&, compressors::buffer in, size_before size) { return compressors::undo_zstd(in, size.bytes); },
     .announced = [](const filter&, from in) { return compressors::zstd_size(in); },
     .lent_as = "zstd"},
    {.id = packbits_filter,
     .name = "packbits",
     .role = known_filter::rearranges,
     .undo_typed = undo_packbits,
     .knows = knows_packbits,
     .lent_as = "packbits"},
    {.id = bytes_filter,
     .name = "bytes",
     .role = known_filter::rearranges,
     .undo_typed = undo_bytes,
     .knows = [](const filter&, const type_tree& type) { return knows_bytes(type); },
     .lent_as = "bytes"},
};
static_assert(std::size(table) <= most_known_filters);

}  // namespace

std::span<const known_filter> known_filters() { return table; }

const known_filter* find_filter(H5Z_filter_t id) {
  const auto found = std::find_if(std::begin(table), std::end(table), [&](const known_filter& k) { return k.id == id; });
  return found == std::end(table) ? nullptr : found;
}

bool is_compression(const filter& f) {
  const known_filter* known = find_filter(f.id);
  return !known || known->role == known_filter::compresses;
}

std::string filter_name(const filter& f) {
  const known_filter* known = find_filter(f.id);
  if (known && known->name) return known->name;
  return std::to_string(f.id) + (f.name.empty() ? "" : " (" + text::shown(f.name) + ")");
}

}  // namespace zarrbits::hdf5
