// SPDX-License-Identifier: BSL-1.0
#include "repack/value_copier.hpp"

#include "hdf5/filter_table.hpp"
#include "hdf5/registered_decoders.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "io/files.hpp"
#include "repack/recoder.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <zarrbits/detail/ordered_work.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace zarrbits::repacking {

namespace {

constexpr std::uint64_t piece_bytes = 16U << 20;  // of values without chunks, read at once

// References, texts, and sequences of numbers and texts.
bool has_plain_sequences(hid_t type) {
  if (H5Tget_class(type) != H5T_VLEN) return H5Tget_class(type) == H5T_STRING || H5Tget_class(type) == H5T_REFERENCE;
  const hdf5::handle base(H5Tget_super(type), "get the base of a datatype");
  return !reference_map::has_linked_values(base) || has_plain_sequences(base);
}

}  // namespace

dataset_pair value_copier::open(const tree_object& o, const dataset_layout& l) const {
  const auto change = changes_.find(o.address);
  dataset_pair d{o,
                 l,
                 change == changes_.end() ? nullptr : &change->second,
                 open_object(source_.file.file(), o),
                 copies_.open_copy(o),
                 {},
                 {},
                 {},
                 {}};
  d.type = hdf5::handle(H5Dget_type(d.source), "get the datatype");
  const hdf5::handle properties(H5Dget_create_plist(d.copy), "get the properties");
  d.filters = hdf5::read_pipeline(properties);
  d.grid.shape = l.dims;
  d.grid.chunk = hdf5::chunk_extent(properties);
  d.has_chunks = H5Pget_layout(properties) == H5D_CHUNKED;
  if (d.grid.chunk.empty() && !l.dims.empty()) d.grid.chunk = array::chunk_shape_for(l.dims, l.element_bytes, piece_bytes);
  if (l.layout == H5D_CHUNKED) d.chunks.emplace(source_.file, d.source);
  return d;
}

template <class Visit>
void value_copier::for_each_dataset(const Visit& visit) {
  for (const tree_object& o : source_.tree.objects) {
    if (o.kind != H5I_DATASET) continue;
    if (const auto change = changes_.find(o.address); change != changes_.end() && change->second.mapping) continue;
    const auto reason = [&](const std::exception& e) { return "\"" + text::escape_name(o.path) + "\": " + e.what(); };
    try {
      visit(o, source_.contents.datasets.at(o.address));
    } catch (const hdf5::failure& e) {
      throw hdf5::failure(reason(e));
    } catch (const io::read_error& e) {
      throw io::read_error(reason(e));
    } catch (const compressors::corrupt_chunk& e) {
      throw compressors::corrupt_chunk(reason(e));
    }
  }
}

void value_copier::reserve_indexes() {
  for_each_dataset([&](const tree_object& o, const dataset_layout& l) {
    const dataset_pair d = open(o, l);
    require_filters(d);
    if (d.has_chunks) reserve_index(d);
  });
}

void value_copier::run() {
  for (const auto& [address, l] : source_.contents.datasets) total_ += l.stored_bytes;
  for_each_dataset([&](const tree_object& o, const dataset_layout& l) {
    if (l.linked_values && l.layout != H5D_VIRTUAL) copy_linked(open(o, l));
  });
  for (const bool chunked : {false, true}) {
    for_each_dataset([&](const tree_object& o, const dataset_layout& l) {
      if (l.linked_values || l.layout == H5D_VIRTUAL) return;
      const dataset_pair d = open(o, l);
      if (d.has_chunks != chunked) return;
      if (!chunked) copy_unchunked(d);
      else if (d.change) recode(d);
      else copy_chunks(d);
    });
  }
}

void value_copier::require_filters(const dataset_pair& d) const {
  const hdf5::type_description type = hdf5::describe_type(d.type);
  const auto refuse = [&](const std::string& what) {
    throw hdf5::failure(what + ", which its " + (d.layout.linked_values ? "values of variable length" : "new chunks") +
                        " need; add the folder of its plugin to HDF5_PLUGIN_PATH" +
                        (d.layout.linked_values ? "" : ", or choose other filters with `filters`"));
  };
  if (!d.change && !d.layout.linked_values) return;
  if (d.layout.linked_values) {  // libhdf5 reads and writes them
    const hdf5::handle properties(H5Dget_create_plist(d.copy), "get the properties");
    for (const hdf5::filter& f : d.filters.filters) {
      unsigned config = 0, flags = 0;
      std::size_t values = 0;
      hdf5::check(H5Pget_filter_by_id2(properties, f.id, &flags, &values, nullptr, 0, nullptr, nullptr), "get a filter");
      if ((flags & H5Z_FLAG_OPTIONAL) != 0) continue;  // chunks are stored without it
      const bool encodes =
          H5Zfilter_avail(f.id) > 0 && H5Zget_filter_info(f.id, &config) >= 0 && (config & H5Z_FILTER_CONFIG_ENCODE_ENABLED) != 0;
      H5Eclear2(H5E_DEFAULT);
      if (!encodes) refuse("libhdf5 has no encoder of filter " + hdf5::filter_name(f));
    }
    return;
  }
  if (d.chunks && !d.layout.can_decode) refuse("there is no decoder of filter " + d.layout.filters.unavailable_filters(type));
  for (const hdf5::filter& f : d.filters.filters) {
    if (!hdf5::can_apply(f)) refuse("there is no encoder of filter " + hdf5::filter_name(f));
  }
}

void value_copier::reserve_index(const dataset_pair& d) const {
  compressors::buffer nothing;  // its bytes are not looked at
  const auto insert = [&](const array::extents& index, std::uint64_t size) {
    if (nothing.size() < size) nothing.resize(static_cast<std::size_t>(size));
    hdf5::check(H5Dwrite_chunk(d.copy, H5P_DEFAULT, 0, hdf5::to_hsize(d.grid.start(index)).data(), static_cast<std::size_t>(size),
                               nothing.data()),
                "reserve a chunk");
  };
  if (!d.change) return d.chunks->for_each(insert);
  const std::uint64_t size = d.filters.empty() ? d.chunk_bytes() : 1;
  for (const std::uint64_t number : d.needed_chunks()) insert(d.grid.chunk_at(number), size);
}

// By libhdf5, chunk by chunk, or in pieces.
void value_copier::copy_linked(const dataset_pair& d) {
  if (!d.chunks && d.layout.stored_bytes == 0) return;
  hdf5::register_decoders(hdf5::handle(H5Dget_create_plist(d.source), "get the properties"), hdf5::missing_encoder::leave_out);
  if (d.layout.dims.empty()) return copy_linked_box(d, {});
  for (const std::uint64_t number : d.needed_chunks()) copy_linked_box(d, d.grid.box_of(d.grid.chunk_at(number)));
}

void value_copier::copy_linked_box(const dataset_pair& d, const array::box& b) {
  const std::uint64_t elements = b.first.empty() ? 1 : b.elements();
  if (H5Sget_simple_extent_type(hdf5::handle(H5Dget_space(d.source), "get the dataspace")) == H5S_NULL || elements == 0) return;
  const std::uint64_t bytes = array::saturating_mul(elements, H5Tget_size(d.type));
  if (bytes > options_.memory / 2)
    throw hdf5::failure("a chunk of " + text::format_bytes(bytes) + ", more than half of `memory`; increase it");
  std::vector<std::byte> values(static_cast<std::size_t>(bytes));
  hdf5::vlen_allocator strings(options_.memory / 2);
  const hdf5::handle memory = space_of(b.shape);
  if (H5Dread(d.source, d.type, memory, selected_space(d.source, b), strings.transfer(), values.data()) < 0) {
    if (strings.exceeded()) {
      H5Eclear2(H5E_DEFAULT);
      throw hdf5::failure("a chunk whose strings or sequences take more than half of `memory`; increase it");
    }
    hdf5::fail("read values");
  }
  copies_.references().translate(d.type, values.data(), elements);
  hdf5::check(H5Dwrite(d.copy, d.type, memory, selected_space(d.copy, b), H5P_DEFAULT, values.data()), "write values");
  if (!has_plain_sequences(d.type) && !was_written(d, b, values)) {
    write_one_by_one(d, b, values);
    if (!was_written(d, b, values)) throw hdf5::failure("libhdf5 cannot write values of its datatype");
  }
  add_progress(d, bytes);
}

// libhdf5 1.10 writes zeros into sequences of compounds that are in compounds, if it writes several values at once.
bool value_copier::was_written(const dataset_pair& d, const array::box& b, const std::vector<std::byte>& values) const {
  std::vector<std::byte> read(values.size());
  hdf5::vlen_allocator strings(options_.memory / 2);
  const hdf5::handle memory = space_of(b.shape);
  hdf5::check(H5Dread(d.copy, d.type, memory, selected_space(d.copy, b), strings.transfer(), read.data()), "read values again");
  return reference_map::are_equal(d.type, values.data(), read.data(), values.size() / H5Tget_size(d.type));
}

void value_copier::write_one_by_one(const dataset_pair& d, const array::box& b, const std::vector<std::byte>& values) const {
  const hdf5::handle memory(H5Screate(H5S_SCALAR), "create a dataspace");
  const std::size_t size = H5Tget_size(d.type);
  std::size_t offset = 0;
  array::for_each_index(b, [&](const array::extents& index) {
    const array::box one{index, array::extents(index.size(), 1)};
    hdf5::check(H5Dwrite(d.copy, d.type, memory, selected_space(d.copy, one), H5P_DEFAULT, values.data() + offset),
                "write a value");
    offset += size;
  });
}

void value_copier::copy_unchunked(const dataset_pair& d) {
  const hdf5::handle properties(H5Dget_create_plist(d.source), "get the properties");
  const bool external = H5Pget_external_count(properties) > 0;
  if (d.layout.stored_bytes == 0 || external) return;
  std::vector<std::byte> values;
  const auto copy_box = [&](const array::box& b) {
    const std::uint64_t bytes = array::saturating_mul(b.first.empty() ? 1 : b.elements(), d.layout.element_bytes);
    if (bytes == 0) return;
    values.resize(static_cast<std::size_t>(bytes));
    const hdf5::handle memory = space_of(b.shape);
    hdf5::check(H5Dread(d.source, d.type, memory, selected_space(d.source, b), H5P_DEFAULT, values.data()), "read values");
    hdf5::check(H5Dwrite(d.copy, d.type, memory, selected_space(d.copy, b), H5P_DEFAULT, values.data()), "write values");
    add_progress(d, bytes);
  };
  if (H5Sget_simple_extent_type(hdf5::handle(H5Dget_space(d.source), "get the dataspace")) == H5S_NULL) return;
  if (d.layout.dims.empty()) return copy_box({});
  for (std::uint64_t i = 0; i < d.grid.chunks(); ++i) copy_box(d.grid.box_of(d.grid.chunk_at(i)));
}

void value_copier::copy_chunks(const dataset_pair& d) {
  struct chunk_place {
    std::uint64_t number, size;
  };
  std::vector<chunk_place> list;
  const array::extents counts = d.grid.counts();
  std::uint64_t largest = 0;
  d.chunks->for_each([&](const array::extents& index, std::uint64_t size) {
    list.push_back({array::ravel(index, counts), size});
    largest = std::max(largest, size);
  });
  struct loaded_chunk {
    compressors::buffer bytes;
    unsigned mask = 0;
  };
  hdf5::detail::ordered_work work(list.size(), threads_for(options_, largest));
  std::vector<loaded_chunk> loaded(work.places());
  work.make_then_use(
      [&](std::size_t i, std::size_t place) {
    located_chunk chunk;
    {
      const hdf5::lock one_thread;
      const hdf5::silence quiet;  // of this thread
      chunk = d.chunks->locate(array::unravel(list[i].number, counts));
    }
    loaded[place].mask = chunk.mask;
    loaded[place].bytes = d.chunks->read(std::move(chunk));
      },
      [&](std::size_t i, std::size_t place) {
    const auto first = hdf5::to_hsize(d.grid.start(array::unravel(list[i].number, counts)));
    {
      const hdf5::lock one_thread;
      hdf5::check(H5Dwrite_chunk(d.copy, H5P_DEFAULT, loaded[place].mask, first.data(), loaded[place].bytes.size(),
                                 loaded[place].bytes.data()),
                  "write a chunk");
    }
    add_progress(d, loaded[place].bytes.size());
  });
}

std::map<haddr_t, copy_estimate> value_copier::estimates() {
  std::map<haddr_t, copy_estimate> result;
  for_each_dataset([&](const tree_object& o, const dataset_layout& l) {
    const dataset_pair d = open(o, l);
    const bool recoded = d.change && d.has_chunks && !l.linked_values;
    result[o.address] = recoded ? recoder(d, options_).estimate() : estimate_copied(d);
  });
  return result;
}

void value_copier::recode(const dataset_pair& d) {
  const std::uint64_t begin = done_;
  double share = 0;
  recoder(d, options_).run([&](double more) {
    share += more;
    done_ = begin;  // in proportion, as the source's chunks have other shapes
    add_progress(d, static_cast<std::uint64_t>(share * static_cast<double>(d.layout.stored_bytes)));
  });
  done_ = begin;
  add_progress(d, d.layout.stored_bytes);
}

void value_copier::add_progress(const dataset_pair& d, std::uint64_t bytes) {
  done_ += bytes;
  if (options_.progress) options_.progress(text::escape_name(d.object.path), std::min(done_, total_), total_);
}

}  // namespace zarrbits::repacking
