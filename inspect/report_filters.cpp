// SPDX-License-Identifier: BSL-1.0
#include "convert/hdf5/chunk_grid.hpp"
#include "convert/hdf5/chunk_index.hpp"
#include "convert/hdf5/filters.hpp"
#include "convert/hdf5/source_file.hpp"
#include "core/kernels/kernels.hpp"
#include "core/packing.hpp"
#include "inspect/file_reports.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <optional>

namespace zarrbits::inspection {

namespace {

using conversion::chunk_grid;
using conversion::source_object;

constexpr std::size_t shown_raw_chunks = 3;
constexpr std::uint64_t largest_chunk_looked_into = std::uint64_t{64} << 20;

// cd_values of packbits as they are in a file; docs/hdf5.md has the table.
struct stored_packbits {
  detail::packing how;
  unsigned components = 1, padding = 0, policy = 0;
};

std::optional<stored_packbits> read_packbits(const std::vector<unsigned>& cd) {
  stored_packbits p;
  if (cd.size() != 12 || cd[4] != 0x5A504201) return {};
  const unsigned size = cd[7] & 0xff, type_bits = cd[7] >> 8 & 0xff, bits = cd[0], first = cd[2];
  if (!(size == 1 || size == 2 || size == 4 || size == 8) || bits == 0 || type_bits > 8 * size || bits > type_bits ||
      first > type_bits - bits || cd[6] == 0 || (cd[1] & 3) == 3)
    return {};
  p.how.size = static_cast<std::uint8_t>(size);
  p.how.type_bits = static_cast<std::uint8_t>(type_bits);
  p.how.bits = static_cast<std::uint8_t>(bits);
  p.how.first_bit = static_cast<std::uint8_t>(first);
  p.how.is_signed = (cd[7] >> 17 & 1) != 0;
  p.how.is_bool = (cd[7] >> 18 & 1) != 0;
  p.how.zero_above = type_bits < 8 * size;
  p.how.swap_memory = size > 1 && ((cd[7] >> 16 & 1) != 0) != (std::endian::native == std::endian::big);
  p.how.msb_first = (cd[1] & 16) != 0;
  p.components = cd[6];
  p.padding = cd[1] & 3;
  p.policy = cd[1] >> 2 & 3;
  p.how.truncate = p.policy == 1;
  return p;
}

std::string in_words(const stored_packbits& p) {
  const auto& how = p.how;
  const unsigned last = how.first_bit + how.bits - 1u;
  std::string text;
  if (how.is_bool) {
    text = "1 bit of each boolean";
  } else {
    text =
        how.bits == 1 ? "bit " + std::to_string(last) : "bits " + std::to_string(how.first_bit) + " to " + std::to_string(last);
    text += " of each " + std::to_string(8 * how.size) + "-bit " + (how.is_signed ? "signed " : "") + "value";
  }
  if (p.components > 1) text += ", " + std::to_string(p.components) + " values in an element";
  if (p.padding != 0)
    text += std::string(", the ") + (p.padding == 1 ? "first" : "last") + " byte of a chunk counts padding bits";
  if (how.msb_first) text += ", most significant bit first as numcodecs does";
  if (p.policy == 1) text += ", bits that do not fit are DROPPED";
  return text;
}

std::string coordinates(const std::vector<hsize_t>& at) {
  std::string text = "(";
  for (std::size_t i = 0; i < at.size(); ++i) text += (i ? ", " : "") + std::to_string(at[i]);
  return text + ")";
}

struct open_dataset {
  h5::handle id, type, space, dcpl;
  chunk_grid grid;
  std::uint64_t element_size = 0;
};

std::string hexadecimal(std::uint64_t v) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

// Why the filter refused this chunk, as far as its values show.
std::string why_raw(const open_dataset& d, const std::optional<stored_packbits>& p, const std::vector<hsize_t>& at) {
  if (!p) return "the filter failed";
  const std::vector<hsize_t> start = d.grid.start(at), count = d.grid.inside(at);
  const std::uint64_t elements = conversion::product(count);
  if (p->how.size * std::uint64_t{p->components} != d.element_size)
    return "the filter's parameters do not belong to the datatype";
  if (elements > largest_chunk_looked_into / d.element_size) return "too large to look into";
  std::vector<std::byte> values(static_cast<std::size_t>(elements * d.element_size));
  const h5::handle file_space(H5Scopy(d.space), "copy the dataspace");
  h5::check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), "select a chunk");
  const h5::handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), "make a dataspace");
  if (H5Dread(d.id, d.type, memory, file_space, H5P_DEFAULT, values.data()) < 0) return "it cannot be read: " + h5::last_error();
  const std::size_t n = values.size() / p->how.size, bad = detail::first_refused(detail::kernels(), p->how, values.data(), n);
  const auto sentence = [&p](std::uint64_t v) {
    return p->how.is_bool ? std::to_string(v) + ", which is no boolean"
                          : hexadecimal(v) + ", which bits " + std::to_string(p->how.first_bit) + " to " +
                                std::to_string(p->how.first_bit + p->how.bits - 1) + " cannot hold";
  };
  if (bad != n) {
    std::vector<hsize_t> where(count.size());
    std::uint64_t rest = bad / p->components;
    for (std::size_t i = count.size(); i-- > 0; rest /= count[i]) where[i] = start[i] + rest % count[i];
    return "element " + coordinates(where) + " is " + sentence(detail::load_component(p->how, values.data() + bad * p->how.size));
  }
  if (d.grid.partial(at)) {
    std::vector<std::byte> fill(static_cast<std::size_t>(d.element_size));
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
    if (H5Pfill_value_defined(d.dcpl, &defined) >= 0 && defined != H5D_FILL_VALUE_UNDEFINED &&
        H5Pget_fill_value(d.dcpl, d.type, fill.data()) >= 0 &&
        detail::first_refused(detail::kernels(), p->how, fill.data(), p->components) != p->components)
      return "it reaches over the edge, where the fill value is " + sentence(detail::load_component(p->how, fill.data()));
  }
  return "all its values would fit; perhaps it was written where the plugin was not found";
}

std::string filter_name(hid_t dcpl, unsigned i, unsigned& flags, std::vector<unsigned>& cd, int& id) {
  char name[64] = "";
  std::size_t n = 0;
  unsigned config = 0;
  id = H5Pget_filter2(dcpl, i, &flags, &n, nullptr, sizeof name, name, &config);
  if (id < 0) h5::fail("tell the filters");
  cd.assign(std::min<std::size_t>(n, 64), 0);
  n = cd.size();
  if (n > 0 && H5Pget_filter2(dcpl, i, &flags, &n, cd.data(), 0, nullptr, &config) < 0) h5::fail("tell a filter's parameters");
  name[sizeof name - 1] = '\0';
  switch (id) {
    case H5Z_FILTER_DEFLATE: return "deflate";
    case H5Z_FILTER_SHUFFLE: return "shuffle";
    case H5Z_FILTER_FLETCHER32: return "fletcher32";
    default: return *name ? name : "filter " + std::to_string(id);
  }
}

// True if the stored chunk or its mask shows that our filter (the first) was left out.
bool is_raw(const open_dataset& d, bool can_tell_by_size, std::uint64_t raw_size, const std::vector<hsize_t>& at,
            hsize_t stored) {
  // To get the mask, the chunk must be read: libhdf5 1.10 finds chunk information only by number, in time that grows with their
  // number. And parallel HDF5 does not write the mask.
  if (can_tell_by_size) return stored == raw_size;
  if (stored > largest_chunk_looked_into) return false;
  std::vector<std::byte> chunk(static_cast<std::size_t>(stored));
  std::uint32_t mask = 0;
  const std::vector<hsize_t> start = d.grid.start(at);
  h5::check(H5Dread_chunk(d.id, H5P_DEFAULT, start.data(), &mask, chunk.data()), "read a chunk");
  return (mask & 1) != 0;
}

struct filters_after {
  std::uint64_t checksums = 0;  // fletcher32
  bool others = false;          // or an optional filter: packed and raw chunks may get the same size
};

void look_at_chunks(const open_dataset& d, const std::optional<stored_packbits>& p, const filters_after& after,
                    filtered_dataset& out) {
  const std::uint64_t decoded = d.grid.chunk_elements() * d.element_size;  // HDF5 checked this when it opened the dataset
  bool as_large = false;
  if (p) {
    const std::uint64_t values = d.grid.chunk_elements() * p->components;
    const std::uint64_t packed = values / 8 * p->how.bits + (values % 8 * p->how.bits + 7) / 8 + (p->padding != 0);
    as_large = packed == decoded;
  }
  const bool by_size = p && !as_large && !after.others;
  conversion::for_each_stored_chunk(d.id, d.grid, [&](const std::vector<hsize_t>& at, hsize_t stored) {
    ++out.chunks;
    out.decoded += decoded;
    out.stored += stored;
    if (!is_raw(d, by_size, decoded + 4 * after.checksums, at, stored)) return;
    ++out.raw;
    if (out.shown.size() >= shown_raw_chunks) return;
    const std::vector<hsize_t> origin = d.grid.start(at);
    out.shown.push_back({{origin.begin(), origin.end()}, why_raw(d, p, at)});
  });
  // Earlier plugins created such datasets; the present one does not. HDF5 leaves the filter mask when it writes a chunk again
  // with the same size.
  if (!p || out.mandatory || !detail::is_checked(p->how) || !(as_large || after.others) || !out.problem.empty()) return;
  const auto& how = p->how;
  const std::string alone = "-f NAME:UD=" + std::to_string(conversion::packbits_filter) + ",1,3," + std::to_string(how.bits) +
                            "," + std::to_string(p->padding | p->policy << 2 | (how.msb_first ? 16u : 0u)) + "," +
                            std::to_string(how.first_bit);
  std::string chunk = "-l NAME:CHUNK=";
  for (std::size_t i = 0; i < out.chunk.size(); ++i) chunk += (i ? "x" : "") + std::to_string(out.chunk[i]);
  out.problem = "AT RISK when it is written again: ";
  if (as_large)
    out.problem +=
        "a packed chunk is as large as a raw one, and HDF5 misreads a chunk that changes from one to the other; store it without "
        "packbits "
        "(h5repack -f NAME:NONE old.h5 new.h5), or in larger chunks (-l NAME:CHUNK=... " +
        alone + ")";
  else
    out.problem +=
        "packbits is optional before another filter, and HDF5 misreads a chunk that changes between packed and raw and keeps its "
        "size; " +
        (out.raw == 0 ? "store it anew with this version's plugin, which makes packbits mandatory there (h5repack " + chunk +
                            " old.h5 new.h5)"
                      : "since it has raw chunks, store it anew with packbits alone (h5repack " + alone + " old.h5 new.h5)");
}

void examine_dataset(const conversion::source_file& file, const source_object& o, filter_report& report) {
  open_dataset d;
  d.id = file.open(o);
  file.require_values(d.id);
  d.dcpl = h5::handle(H5Dget_create_plist(d.id), "tell the dataset's properties");
  const int filters = H5Pget_nfilters(d.dcpl);
  filtered_dataset out;
  out.path = o.path;
  int our_place = -1;
  std::vector<unsigned> ours;
  filters_after after;
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0;
    int id = 0;
    std::vector<unsigned> cd;
    const std::string name = filter_name(d.dcpl, static_cast<unsigned>(i), flags, cd, id);
    if (our_place < 0 && (id == conversion::packbits_filter || id == conversion::bytes_filter)) {
      our_place = i;
      out.filter = id == conversion::packbits_filter ? "packbits" : "bytes";
      out.mandatory = (flags & H5Z_FLAG_OPTIONAL) == 0;
      ours = cd;
    } else if (our_place >= 0) {
      out.after.push_back(name);
      if (id == H5Z_FILTER_FLETCHER32 && (flags & H5Z_FLAG_OPTIONAL) == 0) ++after.checksums;
      else after.others = true;
    }
  }
  if (our_place < 0) return;
  report.ours.push_back(out);
  filtered_dataset& entry = report.ours.back();
  std::optional<stored_packbits> p;
  if (entry.filter == "packbits") {
    p = read_packbits(ours);
    entry.parameters = p ? in_words(*p) : "parameters that this version does not know";
    if (!p) entry.problem = "the filter's parameters are damaged, or from another version of zarrbits";
  } else {
    entry.parameters = std::string(!ours.empty() && ours[0] == 1 ? "big" : "little") + " endian chunks";
  }
  if (our_place != 0)
    entry.problem = "another filter stands before it, which the filter never allows: its values are not what they seem";
  d.type = h5::handle(H5Dget_type(d.id), "tell the datatype");
  d.space = h5::handle(H5Dget_space(d.id), "tell the dataspace");
  d.element_size = H5Tget_size(d.type);
  d.grid.shape = h5::extent(d.space);
  d.grid.chunk.resize(d.grid.shape.size());
  if (d.grid.shape.empty() || H5Pget_layout(d.dcpl) != H5D_CHUNKED ||
      H5Pget_chunk(d.dcpl, static_cast<int>(d.grid.chunk.size()), d.grid.chunk.data()) != static_cast<int>(d.grid.chunk.size())) {
    entry.problem = "the dataset has no chunks, so the filter does nothing";
    return;
  }
  entry.chunk.assign(d.grid.chunk.begin(), d.grid.chunk.end());
  look_at_chunks(d, p, after, entry);
}

}  // namespace

filter_report read_filters(const file_options& options, const std::function<void(const std::string&, std::uint64_t)>& progress) {
  conversion::source_file file(options.file, {.external = options.external, .lock = options.lock});
  file.walk(true);
  filter_report report;
  for (const source_object& o : file.objects()) {
    if (progress) progress(o.path, file.objects().size());
    if (!o.listing_error.empty()) report.unreadable.push_back(o.path + ": " + o.listing_error);
    if (o.kind != source_object::kind_type::dataset) continue;
    ++report.datasets;
    try {
      examine_dataset(file, o, report);
    } catch (const h5::failure& e) {
      report.unreadable.push_back(o.path + ": " + e.what());
    }
  }
  file.require_unchanged();
  return report;
}

}  // namespace zarrbits::inspection
