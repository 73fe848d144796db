// SPDX-License-Identifier: BSL-1.0
#include "array/chunk_grid.hpp"
#include "hdf5/chunk_index.hpp"
#include "hdf5/external_files.hpp"
#include "hdf5/filters.hpp"
#include "hdf5/source_file.hpp"
#include "inspect/file_reports.hpp"
#include "inspect/repack.hpp"
#include "inspect/used_bits.hpp"
#include "text/name_escaping.hpp"

#include <zarrbits/source_name.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

namespace zarrbits::inspection {

namespace {

using array::chunk_grid;
using hdf5::source_object;

constexpr std::uint64_t piece = std::uint64_t{1} << 20;        // bytes to read at a time: they stay in the cache
constexpr std::uint64_t new_chunk = std::uint64_t{1} << 20;    // bytes of a chunk if the dataset has none
constexpr std::uint64_t max_chunk = std::uint64_t{256} << 20;  // libhdf5 holds a chunk in memory to undo its filters

class reader {
 public:
  reader(const hdf5::handle& dataset, const hdf5::handle& type, const number& t,
         const std::function<void(std::uint64_t)>& advance)
      : dataset_(dataset),
        type_(type),
        t_(t),
        advance_(advance),
        space_(H5Dget_space(dataset), "get the dataspace"),
        shape_(hdf5::extent(space_)) {}

  // Collects a whole chunk that is stored as it is, without libhdf5. False if libhdf5 must read it.
  bool stored_chunk(const hdf5::file_bytes& file, const array::extents& first, std::uint64_t bytes, used_bits& out) {
    unsigned mask = 0;
    const auto location = file.chunks().find(dataset_, first, mask);
    if (!location || location->size != bytes) return false;
    try {
      for (std::uint64_t offset = 0; offset < bytes;) {
        values_.resize(static_cast<std::size_t>(std::min(piece, bytes - offset)));
        file.read(location->offset + offset, values_);
        collect(values_.data(), values_.size() / t_.size, t_, out);
        offset += values_.size();
        advance_(values_.size());
      }
    } catch (const io::read_error& e) {
      throw hdf5::failure(e.what());
    }
    return true;
  }

  // Collects the elements of a box, one piece at a time.
  void box(const array::extents& start, const array::extents& count, used_bits& out) {
    if (shape_.empty()) return read(H5S_ALL, H5S_ALL, 1, out);
    array::extents step = count;
    for (std::size_t d = 0; d < step.size(); ++d) {
      const std::uint64_t row_bytes = array::product(std::span(step).subspan(d + 1)) * t_.size;
      if (row_bytes <= piece) {
        step[d] = std::min<std::uint64_t>(step[d], std::max<std::uint64_t>(1, piece / std::max<std::uint64_t>(1, row_bytes)));
        break;
      }
      step[d] = 1;
    }
    const array::chunk_grid pieces{count, step};
    array::extents index(step.size(), 0);
    do {
      const std::vector<hsize_t> extent = hdf5::to_hsize(pieces.inside(index));
      std::vector<hsize_t> origin = hdf5::to_hsize(start);
      for (std::size_t d = 0; d < origin.size(); ++d) origin[d] += pieces.start(d, index[d]);
      hdf5::check(H5Sselect_hyperslab(space_, H5S_SELECT_SET, origin.data(), nullptr, extent.data(), nullptr), "select elements");
      const hsize_t n = array::product(pieces.inside(index));
      const hdf5::handle memory(H5Screate_simple(1, &n, nullptr), "create a dataspace");
      read(memory, space_, n, out);
    } while (pieces.next(index));
  }

 private:
  void read(hid_t memory, hid_t space, std::uint64_t n, used_bits& out) {
    values_.resize(static_cast<std::size_t>(n * t_.size));
    hdf5::check_read(H5Dread(dataset_, type_, memory, space, H5P_DEFAULT, values_.data()), dataset_, "read the values");
    collect(values_.data(), static_cast<std::size_t>(n), t_, out);
    advance_(n * t_.size);
  }

  const hdf5::handle& dataset_;
  const hdf5::handle& type_;
  const number& t_;
  const std::function<void(std::uint64_t)>& advance_;
  hdf5::handle space_;
  array::extents shape_;
  std::vector<std::byte> values_;
};

void collect_fill_value(hid_t dcpl, hid_t type, const number& t, used_bits& out) {
  H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;
  std::byte fill[8] = {};
  if (H5Pfill_value_defined(dcpl, &defined) < 0 || defined == H5D_FILL_VALUE_UNDEFINED) return;
  hdf5::check(H5Pget_fill_value(dcpl, type, fill), "get the fill value");
  collect(fill, 1, t, out);
}

array::extents chunk_for(const array::extents& shape, unsigned size) {
  array::extents chunk = shape;
  while (array::product(chunk) > new_chunk / size) {
    const auto longest = std::find_if(chunk.begin(), chunk.end(), [](std::uint64_t n) { return n > 1; });
    if (longest == chunk.end()) break;
    *longest = (*longest + 1) / 2;
  }
  return chunk;
}

std::string filters_of(hid_t dcpl, bool& has_packbits, std::string* unfound = nullptr) {
  std::string names;
  has_packbits = false;
  for (int i = 0, n = H5Pget_nfilters(dcpl); i < n; ++i) {
    char name[64] = "";
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const int id = H5Pget_filter2(dcpl, static_cast<unsigned>(i), &flags, &values, nullptr, sizeof name, name, &config);
    name[sizeof name - 1] = '\0';
    has_packbits = has_packbits || id == hdf5::packbits_filter;
    const std::string display_name = *name ? text::escape_name(name) : "filter " + std::to_string(id);
    names += (names.empty() ? "" : ", ") + display_name;
    if (unfound && unfound->empty() && H5Zfilter_avail(id) <= 0) *unfound = display_name;
  }
  return names;
}

std::vector<std::string> repack_arguments(const suggestion& s, const std::string& name) {
  if (!can_repack(name)) return {};
  std::vector<std::string> arguments = repack_filter(name, hdf5::packbits_filter, s.parameters);
  if (s.chunk_is_new) {
    std::string chunk;
    for (const auto n : s.chunk) chunk += (chunk.empty() ? "" : "x") + std::to_string(n);
    arguments.insert(arguments.begin(), {"-l", name + ":CHUNK=" + chunk});
  }
  return arguments;
}

suggestion examine_dataset(const hdf5::source_file& file, const source_object& o, repack_names& names,
                           const std::function<void(std::uint64_t)>& advance) {
  suggestion s;
  s.path = o.path;
  hdf5::handle dataset = file.open(o);
  file.require_values(dataset);
  const std::string name = names.name_of(o, dataset);
  const hdf5::handle type(H5Dget_type(dataset), "get the datatype"),
      dcpl(H5Dget_create_plist(dataset), "get the dataset's properties");
  const number t = describe(type);
  const hdf5::handle space(H5Dget_space(dataset), "get the dataspace");
  const array::extents shape = hdf5::extent(space);
  const H5D_layout_t layout = H5Pget_layout(dcpl);
  s.type = t.name;
  s.width = 8 * t.size;
  s.elements = array::product(shape);
  s.before = H5Dget_storage_size(dataset);
  if (H5Sget_simple_extent_type(space) != H5S_SIMPLE || shape.empty()) throw not_packable{"a single value"};
  if (layout == H5D_VIRTUAL) throw not_packable{"virtual: its values are in other datasets"};
  if (s.elements == 0 || s.before == 0) throw not_packable{"nothing is stored"};

  used_bits used;
  std::uint64_t chunks = 0, chunk_elements = 0;
  if (layout == H5D_CHUNKED) {
    chunk_grid grid;
    grid.shape = shape;
    grid.chunk = hdf5::chunk_extent(dcpl);
    if (grid.chunk.size() != shape.size()) hdf5::fail("get the chunk's shape");
    chunk_elements = grid.chunk_elements();
    if (chunk_elements > max_chunk / t.size && H5Pget_nfilters(dcpl) > 0)
      throw not_packable{"filtered chunks of more than 256 MiB"};
    // the cache must hold a chunk, or each piece would decode it again
    const hdf5::handle access(H5Pcreate(H5P_DATASET_ACCESS), "create a property list");
    hdf5::check(
        H5Pset_chunk_cache(access, 1,
                           static_cast<std::size_t>(std::clamp<std::uint64_t>(chunk_elements * t.size, 1 << 20, max_chunk)), 1),
        "set the cache");
    dataset = hdf5::handle(H5Dopen2(file.file(), name.c_str(), access), "open the dataset");
    reader read(dataset, type, t, advance);
    bool partial = false;
    const bool plain = H5Pget_nfilters(dcpl) == 0;
    hdf5::for_each_stored_chunk(dataset, grid, [&](const array::extents& index, std::uint64_t) {
      ++chunks;
      partial = partial || grid.is_partial(index);
      if (plain && !grid.is_partial(index) && read.stored_chunk(*file.bytes(), grid.start(index), chunk_elements * t.size, used))
        return;
      read.box(grid.start(index), grid.inside(index), used);
    });
    // elements outside the extent, or never written, hold the fill value, which must fit too
    if (partial || chunks < grid.chunks()) collect_fill_value(dcpl, type, t, used);
    s.chunk = grid.chunk;
    chunks = grid.chunks();  // h5repack writes all chunks
  } else {
    const array::extents chunk = chunk_for(shape, t.size);
    chunk_grid grid{shape, chunk};
    reader(dataset, type, t, advance).box(array::extents(shape.size(), 0), shape, used);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] % chunk[d] == 0) continue;
      collect_fill_value(dcpl, type, t, used);
      break;
    }
    s.chunk = chunk;
    s.chunk_is_new = true;
    chunks = grid.chunks();
    chunk_elements = grid.chunk_elements();
  }

  used.range(s.width, t.is_signed, s.first_bit, s.last_bit);
  if (t.kind == number::boolean) {
    s.parameters = "0";
    if (s.last_bit > 0) s.obstacle = "some values are neither FALSE nor TRUE, and would be stored unpacked";
    s.first_bit = s.last_bit = 0;
  } else if (t.reduced) {
    s.parameters = "0";
    s.first_bit = t.first_bit;
    s.last_bit = t.last_bit;
  } else {
    const unsigned bits = s.last_bit - s.first_bit + 1;
    s.parameters =
        s.first_bit == 0 ? "1," + std::to_string(bits) : "3," + std::to_string(bits) + ",0," + std::to_string(s.first_bit);
  }
  const std::uint64_t bits = s.last_bit - s.first_bit + 1;
  s.after = chunks * (chunk_elements / 8 * bits + (chunk_elements % 8 * bits + 7) / 8);
  bool has_packbits = false;
  std::string unfound;
  const std::string filters = filters_of(dcpl, has_packbits, &unfound);
  if (s.obstacle.empty() && bits == s.width) s.obstacle = "all bits are used";
  if (s.obstacle.empty() && s.after >= s.before)
    s.obstacle = has_packbits ? "packed already"
                              : "no gain over the stored size" + (filters.empty() ? std::string() : " (" + filters + ")");
  if (s.obstacle.empty() && !unfound.empty()) s.obstacle = "HDF5 does not find its filter " + unfound + ", which h5repack needs";
  if (s.obstacle.empty()) {
    s.h5repack = repack_arguments(s, name);
    if (s.h5repack.empty())
      s.obstacle =
          "h5repack cannot be given a name with a colon, a comma or more than 250 bytes; rename the dataset, or write it again";
    // a sign without negative values, or an exponent of which half is used: the next value may need it
    else if (t.kind == number::real && (s.before - s.after) * 20 < s.before)
      s.obstacle = "saves less than 5 %, with bits that these floats do not happen to use";
  }
  return s;
}

}  // namespace

suggested_bits collect_bits(const file_options& options, const std::function<void(const suggest_progress&)>& progress) {
  hdf5::source_file file(split_source(options.file).file,
                         {.remote = options.remote, .external = options.external, .lock = options.lock});
  file.walk(true);
  suggested_bits r;
  suggest_progress p;
  repack_names names(file);
  for (const source_object& o : file.objects()) {
    if (o.kind != source_object::kind_type::dataset) continue;
    try {
      const hdf5::handle dataset = file.open(o);
      file.require_values(dataset);
      const hdf5::handle type(H5Dget_type(dataset), "get the datatype"), space(H5Dget_space(dataset), "get the dataspace");
      const std::uint64_t elements = array::product(hdf5::extent(space)), size = H5Tget_size(type);
      bool has_packbits = false;
      std::string unfound;
      filters_of(hdf5::handle(H5Dget_create_plist(dataset), "get the dataset's properties"), has_packbits, &unfound);
      if (!unfound.empty()) r.missing_filters.push_back({o.path, unfound});
      if (H5Dget_storage_size(dataset) > 0 && size > 0 && elements < (UINT64_MAX - p.total) / size) p.total += elements * size;
    } catch (const hdf5::failure&) {  // reported below
    }
  }
  for (const source_object& o : file.objects()) {
    if (!o.listing_error.empty()) r.left_out.push_back({o.path, o.listing_error.sentence});
    if (o.kind != source_object::kind_type::dataset) continue;
    p.path = o.path;
    p.bytes = 0;
    if (progress) progress(p);
    try {
      r.datasets.push_back(examine_dataset(file, o, names, [&](std::uint64_t bytes) {
        p.bytes = bytes;
        if (progress) progress(p);
      }));
    } catch (const not_packable& e) {
      r.left_out.push_back({o.path, e.reason});
    } catch (const hdf5::failure& e) {
      r.left_out.push_back({o.path, e.what()});
    }
  }
  file.require_unchanged();
  return r;
}

}  // namespace zarrbits::inspection
