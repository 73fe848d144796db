// SPDX-License-Identifier: BSL-1.0
#include "array/chunk_grid.hpp"
#include "core/kernels/kernels.hpp"
#include "core/packing.hpp"
#include "hdf5/chunk_index.hpp"
#include "hdf5/filters.hpp"
#include "hdf5/source_file.hpp"
#include "hdf5/type_description.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "hdf5/zarrbits_filters.hpp"
#include "inspect/file_reports.hpp"
#include "inspect/repack.hpp"
#include "inspect/used_bits.hpp"

#include <zarrbits/source_name.hpp>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <optional>

namespace zarrbits::inspection {

namespace {

using array::chunk_grid;
using hdf5::source_object;

constexpr std::size_t max_shown_raw_chunks = 3;
constexpr std::uint64_t max_examined_chunk = std::uint64_t{64} << 20;

// cd_values of packbits as they are in a file; docs/reference/filters.md has the table.
struct stored_packbits {
  detail::packing format;
  unsigned components = 1, padding = 0, policy = 0;
};

std::optional<stored_packbits> read_packbits(const std::vector<unsigned>& cd) {
  stored_packbits p;
  if (cd.size() != 12 || cd[4] != 0x5A504201) return {};
  const unsigned size = cd[7] & 0xff, type_bits = cd[7] >> 8 & 0xff, bits = cd[0], first = cd[2];
  if (!(size == 1 || size == 2 || size == 4 || size == 8) || bits == 0 || type_bits > 8 * size || bits > type_bits ||
      first > type_bits - bits || cd[6] == 0 || (cd[1] & 3) == 3)
    return {};
  p.format.size = static_cast<std::uint8_t>(size);
  p.format.type_bits = static_cast<std::uint8_t>(type_bits);
  p.format.bits = static_cast<std::uint8_t>(bits);
  p.format.first_bit = static_cast<std::uint8_t>(first);
  p.format.is_signed = (cd[7] >> 17 & 1) != 0;
  p.format.is_bool = (cd[7] >> 18 & 1) != 0;
  p.format.zero_above = type_bits < 8 * size;
  p.format.swap_memory = size > 1 && ((cd[7] >> 16 & 1) != 0) != (std::endian::native == std::endian::big);
  p.format.msb_first = (cd[1] & 16) != 0;
  p.components = cd[6];
  p.padding = cd[1] & 3;
  p.policy = cd[1] >> 2 & 3;
  p.format.truncate = p.policy == 1;
  return p;
}

std::string in_words(const stored_packbits& p) {
  const auto& format = p.format;
  const unsigned last = format.first_bit + format.bits - 1u;
  std::string text;
  if (format.is_bool) {
    text = "1 bit of each boolean";
  } else {
    text = format.bits == 1 ? "bit " + std::to_string(last)
                            : "bits " + std::to_string(format.first_bit) + " to " + std::to_string(last);
    text += " of each " + std::to_string(8 * format.size) + "-bit " + (format.is_signed ? "signed " : "") + "value";
  }
  if (p.components > 1) text += ", " + std::to_string(p.components) + " values in an element";
  if (p.padding != 0)
    text += std::string(", the ") + (p.padding == 1 ? "first" : "last") + " byte of a chunk counts padding bits";
  if (format.msb_first) text += ", most significant bit first as numcodecs does";
  if (p.policy == 1) text += ", bits that do not fit are DROPPED";
  if (p.policy == 3) text += ", a value that does not fit makes the write FAIL";
  return text;
}

std::string coordinates(const array::extents& index) {
  std::string text = "(";
  for (std::size_t i = 0; i < index.size(); ++i) text += (i ? ", " : "") + std::to_string(index[i]);
  return text + ")";
}

struct open_dataset {
  hdf5::handle id, type, space, dcpl;
  chunk_grid grid;
  std::uint64_t element_size = 0;
  hdf5::pipeline filters;
  std::size_t place = 0;  // of our filter
  hdf5::type_description tree;

  std::uint64_t chunk_bytes() const { return grid.chunk_elements() * element_size; }
};

std::string to_hexadecimal(std::uint64_t v) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

// The bits that would hold the values of all chunks: packed ones may use all that are kept.
class needed_bits {
 public:
  explicit needed_bits(const stored_packbits& p) {
    t_.size = p.format.size;
    t_.is_signed = p.format.is_signed;
    t_.big_endian = p.format.swap_memory != (std::endian::native == std::endian::big) && p.format.size > 1;
    used_.set_bits = (~std::uint64_t{0} >> (64 - p.format.bits)) << p.format.first_bit;
    used_.non_sign_bits = used_.set_bits & ~(std::uint64_t{1} << (p.format.first_bit + p.format.bits - 1));  // without the sign
  }
  void add(const compressors::buffer& values) { collect(values.data(), values.size() / t_.size, t_, used_); }
  std::string in_words() const {
    unsigned first = 0, last = 0;
    used_.range(8 * t_.size, t_.is_signed, first, last);
    return std::to_string(last - first + 1) + " bits (" + std::to_string(first) + " to " + std::to_string(last) + ")";
  }

 private:
  number t_;
  used_bits used_;
};

// Why this chunk is unpacked, as far as its values show.
std::string unpacked_reason(const open_dataset& d, const stored_packbits& p, const array::extents& index, bool masked,
                            const compressors::buffer& values) {
  if (d.filters.partial_unfiltered && d.grid.is_partial(index))
    return "it reaches over the edge, and the dataset leaves such chunks unfiltered (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS)";
  const auto sentence = [&p](std::uint64_t v) {
    return p.format.is_bool ? std::to_string(v) + ", which is not a boolean"
                            : to_hexadecimal(v) + ", which bits " + std::to_string(p.format.first_bit) + " to " +
                                  std::to_string(p.format.first_bit + p.format.bits - 1) + " cannot hold";
  };
  const array::extents start = d.grid.start(index), inside = d.grid.inside(index);
  std::string outside;
  for (std::size_t n = values.size() / p.format.size, i = 0; i < n; ++i) {
    i += detail::first_refused(detail::kernels(), p.format, values.data() + i * p.format.size, n - i);
    if (i == n) break;
    const std::string value_text = sentence(detail::load_component(p.format, values.data() + i * p.format.size));
    array::extents position = array::unravel(i / p.components, d.grid.chunk);
    bool is_outside = false;
    for (std::size_t k = 0; k < position.size(); ++k) {
      is_outside = is_outside || position[k] >= inside[k];
      position[k] += start[k];
    }
    if (!is_outside) return "element " + coordinates(position) + " is " + value_text;
    if (outside.empty()) outside = "it reaches over the edge, where the fill value is " + value_text;
  }
  if (!outside.empty()) return outside;
  return masked
             ? "all its values would fit: the process that wrote it had not loaded the plugin, which HDF5 does by itself when a "
               "dataset is created or read, but not when one that it opened is written (in Python, import zarrbits first; in C, "
               "call H5Zfilter_avail(" +
                   std::to_string(hdf5::packbits_filter) + ") first)"
             : "all its values would fit: it was written around the filter, as H5Dwrite_chunk does";
}

std::string filter_name(hid_t dcpl, unsigned i, unsigned& flags, int& id) {
  char name[64] = "";
  std::size_t value_count = 0;
  unsigned config = 0;
  id = H5Pget_filter2(dcpl, i, &flags, &value_count, nullptr, sizeof name, name, &config);
  if (id < 0) hdf5::fail("get the filters");
  name[sizeof name - 1] = '\0';
  switch (id) {
    case H5Z_FILTER_DEFLATE: return "deflate";
    case H5Z_FILTER_SHUFFLE: return "shuffle";
    case H5Z_FILTER_FLETCHER32: return "fletcher32";
    default: return *name ? name : "filter " + std::to_string(id);
  }
}

// A stored chunk that our filter left as it was.
struct unpacked {
  bool masked = false;         // the filter mask says so
  compressors::buffer values;  // empty if it is too large to look into
};

// Without a compression after packbits, the stored length shows it. Otherwise the length after that compression does: the chunk
// must be read. So it must be for the mask, since libhdf5 1.10 finds chunk information only by number, in time that grows with
// it.
std::optional<unpacked> find_unpacked(const open_dataset& d, bool told_by_size, std::uint64_t raw_size,
                                      const array::extents& index, std::uint64_t stored) {
  const bool filtered = !(d.filters.partial_unfiltered && d.grid.is_partial(index));
  if (filtered && told_by_size && stored != raw_size) return {};
  unpacked result;
  if (stored > max_examined_chunk || d.chunk_bytes() > max_examined_chunk)
    return told_by_size || !filtered ? std::optional(result) : std::nullopt;
  compressors::buffer chunk(static_cast<std::size_t>(stored));
  std::uint32_t mask = 0;
  hdf5::check(H5Dread_chunk(d.id, H5P_DEFAULT, hdf5::to_hsize(d.grid.start(index)).data(), &mask, chunk.data()), "read a chunk");
  if (!filtered) mask = ~std::uint32_t{0};
  result.masked = d.place < 32 && (mask >> d.place & 1) != 0;
  const auto plain = static_cast<std::size_t>(d.chunk_bytes());
  if (result.masked) {
    result.values = hdf5::undo(d.filters, mask, std::move(chunk), plain, d.tree);
    return result;
  }
  if (!told_by_size) {
    chunk = hdf5::undo_after_packbits(d.filters, d.place, mask, std::move(chunk), plain, d.tree);
    // a checksum that comes before packbits follows the values
    if (!hdf5::left_unpacked(d.filters.filters[d.place], chunk, {plain, 4 * d.place}, d.tree)) return {};
  }
  chunk.resize(plain);
  result.values = std::move(chunk);
  return result;
}

void examine_chunks(const open_dataset& d, const std::optional<stored_packbits>& p, filtered_dataset& out) {
  const std::uint64_t decoded = d.chunk_bytes();  // HDF5 checked this when it opened the dataset
  const auto checksum = [](const hdf5::filter& f) { return f.id == H5Z_FILTER_FLETCHER32; };
  const auto next_filter = d.filters.filters.begin() + static_cast<std::ptrdiff_t>(d.place) + 1;
  const bool checked_only = std::all_of(next_filter, d.filters.filters.end(), checksum);
  const std::uint64_t raw_size = decoded + 4 * (d.filters.filters.size() - 1);
  std::optional<needed_bits> needed;
  bool told_by_size = false, looks = false;
  if (p && p->format.size * std::uint64_t{p->components} == d.element_size) {
    const std::uint64_t values = d.grid.chunk_elements() * p->components;
    const std::uint64_t packed = values / 8 * p->format.bits + (values % 8 * p->format.bits + 7) / 8 + (p->padding != 0);
    told_by_size = packed != decoded && checked_only;
    looks = told_by_size || d.filters.can_decode(d.tree);
    if (!p->format.is_bool && !p->format.zero_above) needed.emplace(*p);
  }
  hdf5::for_each_stored_chunk(d.id, d.grid, [&](const array::extents& index, std::uint64_t stored) {
    ++out.chunks;
    out.decoded += decoded;
    out.stored += stored;
    if (!looks) return;
    const array::extents origin = d.grid.start(index);
    const auto add = [&](const std::string& reason) {
      if (out.shown.size() < max_shown_raw_chunks) out.shown.push_back({origin, reason});
    };
    try {
      const auto raw_chunk = find_unpacked(d, told_by_size, raw_size, index, stored);
      if (!raw_chunk) return;
      ++out.raw;
      if (raw_chunk->values.empty()) return add("too large to examine");
      if (out.shown.size() < max_shown_raw_chunks) add(unpacked_reason(d, *p, index, raw_chunk->masked, raw_chunk->values));
      if (needed &&
          detail::first_refused(detail::kernels(), p->format, raw_chunk->values.data(),
                                raw_chunk->values.size() / p->format.size) != raw_chunk->values.size() / p->format.size) {
        needed->add(raw_chunk->values);
        out.would_hold_all = needed->in_words();
      }
    } catch (const compressors::corrupt_chunk& e) {
      if (out.problem.empty()) out.problem = "the chunk at " + coordinates(origin) + " is damaged: " + e.what();
    }
  });
}

// Parameters as a user gives them: what the filter makes of them when a dataset is created is missing.
void examine_unresolved(const open_dataset& d, const std::string& name, filtered_dataset& out) {
  out.parameters = "as they were given, not resolved";
  const bool refers = H5Tdetect_class(d.type, H5T_REFERENCE) > 0 && H5Tequal(d.type, H5T_STD_REF_OBJ) == 0;
  if (hdf5::holds_variable(d.tree) || refers) {
    out.parameters +=
        ": its values lie elsewhere in the file (variable length, references), and the filter leaves their chunks as they are";
    return;
  }
  const std::vector<unsigned>& parameters = d.filters.filters[d.place].values;
  std::string values = std::to_string(std::max<std::size_t>(parameters.size(), 1));
  for (const unsigned v : parameters) values += "," + std::to_string(v);
  if (parameters.empty()) values += ",0";
  out.h5repack = repack_filter(name, d.filters.filters[d.place].id, values);
  out.problem =
      "HDF5 did not find the plugin when the dataset was created, and created it anyway: its chunks are stored as they "
      "are, also those written later; store it again where the plugin is found";
  if (out.h5repack.empty())
    out.problem += ", which h5repack cannot do: its name has a colon, a comma or more than 250 bytes; rename it";
}

void examine_dataset(const hdf5::source_file& file, const source_object& o, repack_names& names, filter_report& report) {
  open_dataset d;
  d.id = file.open(o);
  file.require_values(d.id);
  d.dcpl = hdf5::handle(H5Dget_create_plist(d.id), "get the dataset's properties");
  d.filters = hdf5::read_pipeline(d.dcpl);
  const auto& filters = d.filters.filters;
  while (d.place < filters.size() && filters[d.place].id != hdf5::packbits_filter && filters[d.place].id != hdf5::bytes_filter)
    ++d.place;
  if (d.place == filters.size()) return;
  filtered_dataset out;
  out.path = o.path;
  out.filter = filters[d.place].id == hdf5::packbits_filter ? "packbits" : "bytes";
  bool strange = d.place > 1;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    unsigned flags = 0;
    int id = 0;
    const std::string name = filter_name(d.dcpl, static_cast<unsigned>(i), flags, id);
    if (i < d.place) strange = strange || id != H5Z_FILTER_FLETCHER32;
    if (i < d.place) out.before.push_back(name);
    if (i == d.place) out.mandatory = (flags & H5Z_FLAG_OPTIONAL) == 0;
    if (i > d.place) out.after.push_back(name);
  }
  report.filtered.push_back(out);
  filtered_dataset& entry = report.filtered.back();
  d.type = hdf5::handle(H5Dget_type(d.id), "get the datatype");
  d.space = hdf5::handle(H5Dget_space(d.id), "get the dataspace");
  d.tree = hdf5::describe_type(d.type);
  d.element_size = H5Tget_size(d.type);
  std::optional<stored_packbits> p;
  const hdf5::filter& own_filter = filters[d.place];
  if (!hdf5::was_resolved(own_filter)) {
    examine_unresolved(d, names.name_of(o, d.id), entry);
  } else if (entry.filter == "packbits") {
    p = read_packbits(own_filter.values);
    entry.parameters = p ? in_words(*p) : "parameters that this version does not know";
    if (!p) entry.problem = "the filter's parameters are damaged, or from another version of zarrbits";
  } else {
    entry.parameters = std::string(own_filter.values[0] == 1 ? "big" : "little") + " endian chunks";
  }
  if (strange) entry.problem = "another filter comes before it, which the filter never allows: its values cannot be interpreted";
  d.grid.shape = hdf5::extent(d.space);
  if (H5Pget_layout(d.dcpl) == H5D_CHUNKED) d.grid.chunk = hdf5::chunk_extent(d.dcpl);
  if (d.grid.shape.empty() || d.grid.chunk.size() != d.grid.shape.size()) {
    entry.problem = "the dataset has no chunks, so the filter does nothing";
    return;
  }
  entry.chunk = d.grid.chunk;
  if (strange) p.reset();
  const bool never_packed = !entry.problem.empty() && !hdf5::was_resolved(own_filter);
  examine_chunks(d, p, entry);
  if (never_packed) entry.raw = entry.chunks;
}

}  // namespace

filter_report collect_filters(const file_options& options,
                              const std::function<void(const std::string&, std::uint64_t)>& progress) {
  hdf5::source_file file(split_source(options.file).file,
                         {.remote = options.remote, .external = options.external, .lock = options.lock});
  file.walk(true);
  filter_report report;
  repack_names names(file);
  for (const source_object& o : file.objects()) {
    if (progress) progress(o.path, file.objects().size());
    if (!o.listing_error.empty()) report.unreadable.push_back(o.path + ": " + o.listing_error.sentence);
    if (o.kind != source_object::kind_type::dataset) continue;
    ++report.datasets;
    try {
      examine_dataset(file, o, names, report);
    } catch (const hdf5::failure& e) {
      report.unreadable.push_back(o.path + ": " + e.what());
    }
  }
  file.require_unchanged();
  return report;
}

}  // namespace zarrbits::inspection
