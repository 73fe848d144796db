// SPDX-License-Identifier: BSL-1.0
#include "repack/value_copier.hpp"

#include "array/rechunk_plan.hpp"
#include "hdf5/chunk_form.hpp"
#include "hdf5/filter_table.hpp"
#include "hdf5/registered_decoders.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "io/files.hpp"
#include "repack/stored_chunks.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <zarrbits/detail/ordered_work.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace zarrbits::repacking {

namespace {

constexpr std::uint64_t piece_bytes = 16U << 20;  // of values without chunks, read at once
constexpr std::size_t min_chunks_for_trial = 16;  // fewer are encoded in the time of a trial
constexpr std::size_t samples = 8;                // chunks of a dataset, for an estimate
constexpr std::uint64_t max_sample_bytes = 256U << 20;

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

// The dataspace of values in memory.
hdf5::handle space_of(const array::extents& shape) {
  return {shape.empty() ? H5Screate(H5S_SCALAR)
                        : H5Screate_simple(static_cast<int>(shape.size()), hdf5::to_hsize(shape).data(), nullptr),
          "create a dataspace"};
}

// References, texts, and sequences of numbers and texts.
bool has_plain_sequences(hid_t type) {
  if (H5Tget_class(type) != H5T_VLEN) return H5Tget_class(type) == H5T_STRING || H5Tget_class(type) == H5T_REFERENCE;
  const hdf5::handle base(H5Tget_super(type), "get the base of a datatype");
  return !reference_map::has_linked_values(base) || has_plain_sequences(base);
}

hdf5::filter* find_deflate(hdf5::pipeline& p) {
  const auto f =
      std::find_if(p.filters.begin(), p.filters.end(), [](const hdf5::filter& g) { return g.id == H5Z_FILTER_DEFLATE; });
  return f == p.filters.end() ? nullptr : &*f;
}

// Selects a box of a dataset, if it has dimensions.
hdf5::handle selected_space(hid_t dataset, const array::box& b) {
  hdf5::handle space(H5Dget_space(dataset), "get the dataspace");
  if (b.first.empty()) return space;
  hdf5::check(H5Sselect_hyperslab(space, H5S_SELECT_SET, hdf5::to_hsize(b.first).data(), nullptr, hdf5::to_hsize(b.shape).data(),
                                  nullptr),
              "select values");
  return space;
}

}  // namespace

struct value_copier::dataset_pair {
  const tree_object& object;
  const dataset_layout& layout;
  const dataset_change* change;  // null: its chunks are copied
  hdf5::handle source, copy, type;
  std::optional<stored_chunks> chunks;  // of the source
  array::chunk_grid grid;               // of the copy; without chunks, pieces
  hdf5::pipeline filters;               // of the copy

  bool has_chunks = false;  // the copy

  std::uint64_t chunk_bytes() const { return array::saturating_mul(grid.chunk_elements(), layout.element_bytes); }
  std::uint64_t source_chunk_bytes() const {
    return array::saturating_mul(chunks->grid().chunk_elements(), layout.element_bytes);
  }
};

value_copier::dataset_pair value_copier::open(const tree_object& o, const dataset_layout& l) const {
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
    for (const hdf5::filter& f : d.filters.filters) {
      unsigned config = 0;
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

value_copier::numbers value_copier::needed_chunks(const dataset_pair& d) const {
  numbers needed;
  const array::extents counts = d.grid.counts();
  if (d.chunks) {
    d.chunks->for_each([&](const array::extents& index, std::uint64_t) {
      if (d.chunks->grid().chunk == d.grid.chunk) return needed.push_back(array::ravel(index, counts));
      array::for_each_index(d.grid.chunks_over(d.chunks->grid().box_of(index)), [&](const array::extents& chunk) {
        const std::uint64_t number = array::ravel(chunk, counts);
        if (needed.empty() || needed.back() != number) needed.push_back(number);
      });
    });
    std::sort(needed.begin(), needed.end());
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  } else if (d.layout.stored_bytes > 0) {
    needed.resize(static_cast<std::size_t>(d.grid.chunks()));
    for (std::size_t i = 0; i < needed.size(); ++i) needed[i] = i;
  }
  return needed;
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
  for (const std::uint64_t number : needed_chunks(d)) insert(d.grid.chunk_at(number), size);
}

// By libhdf5, chunk by chunk, or in pieces.
void value_copier::copy_linked(const dataset_pair& d) {
  if (!d.chunks && d.layout.stored_bytes == 0) return;
  hdf5::register_decoders(hdf5::handle(H5Dget_create_plist(d.source), "get the properties"));
  if (d.layout.dims.empty()) return copy_linked_box(d, {});
  for (const std::uint64_t number : needed_chunks(d)) copy_linked_box(d, d.grid.box_of(d.grid.chunk_at(number)));
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

std::size_t value_copier::threads_for(std::uint64_t bytes_at_once) const {
  const std::size_t threads = hdf5::detail::threads_or_all(options_.threads);
  // ordered_work has two things for each thread
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(options_.memory / 2 / std::max<std::uint64_t>(bytes_at_once, 1), 1, threads));
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
  hdf5::detail::ordered_work work(list.size(), threads_for(largest));
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

// Decodes boxes of the source's values, in any thread.
class value_copier::box_reader {
 public:
  explicit box_reader(const dataset_pair& d)
      : dataset_(d),
        type_(hdf5::describe_type(d.type)),
        fill_(hdf5::fill_bytes(hdf5::handle(H5Dget_create_plist(d.copy), "get the properties"), d.type)) {}

  // So many fill values.
  void fill(compressors::buffer& values, std::uint64_t elements) const {
    values.resize(static_cast<std::size_t>(elements * dataset_.layout.element_bytes));
    if (fill_.empty()) std::fill(values.begin(), values.end(), std::byte{0});
    else array::fill_elements(values, std::as_bytes(std::span(fill_)));
  }

  compressors::buffer read(const array::box& b) const {
    compressors::buffer values;
    fill(values, b.elements());
    if (dataset_.chunks) {
      array::for_each_index(dataset_.chunks->grid().chunks_over(b),
                            [&](const array::extents& index) { decode(index, values, b); });
    } else {
      read_unchunked(values, b);
    }
    return values;
  }

  // By libhdf5.
  void read_unchunked(compressors::buffer& values, const array::box& b) const {
    const hdf5::lock one_thread;
    const hdf5::silence quiet;  // of this thread
    hdf5::check(H5Dread(dataset_.source, dataset_.type, space_of(b.shape), selected_space(dataset_.source, b), H5P_DEFAULT,
                        values.data()),
                "read values");
  }

  // Puts what a chunk and the box share into the box's values.
  void decode(const array::extents& index, compressors::buffer& values, const array::box& b) const {
    located_chunk place = locate(index);
    if (place.size == 0) return;
    const std::uint64_t element = dataset_.layout.element_bytes;
    const array::chunk_grid& grid = dataset_.chunks->grid();
    const unsigned mask = dataset_.layout.filters.partial_unfiltered && grid.is_partial(index) ? ~0U : place.mask;
    compressors::buffer stored = dataset_.chunks->read(std::move(place));
    try {
      const compressors::buffer chunk = hdf5::undo(dataset_.layout.filters, mask, std::move(stored),
                                                   static_cast<std::size_t>(grid.chunk_elements() * element), type_);
      const array::box of_chunk{grid.start(index), grid.chunk};
      array::copy_elements(chunk, of_chunk, values, b, array::intersect(of_chunk, b), static_cast<std::size_t>(element));
    } catch (const compressors::corrupt_chunk& e) {
      throw compressors::corrupt_chunk("chunk " + array::joined_text(index, '/') + ": " + e.what());
    }
  }

  // The box's part of the chunks that the source has there.
  double stored_bytes(const array::box& b) const {
    double bytes = 0;
    const array::chunk_grid& grid = dataset_.chunks->grid();
    array::for_each_index(grid.chunks_over(b), [&](const array::extents& index) {
      const array::box shared = array::intersect(grid.box_of(index), b);
      bytes += static_cast<double>(locate(index).size) * static_cast<double>(shared.elements()) /
               static_cast<double>(grid.box_of(index).elements());
    });
    return bytes;
  }

 private:
  located_chunk locate(const array::extents& index) const {
    const hdf5::lock one_thread;
    const hdf5::silence quiet;  // of this thread
    return dataset_.chunks->locate(index);
  }

  const dataset_pair& dataset_;
  const hdf5::type_description type_;
  const std::string fill_;
};

// The level of deflate is libdeflate's first, which takes half the time of its fourth, where that makes chunks no larger than the
// source's are: two of them are tried. An option's level is kept, and that of values that deflate is new to.
hdf5::pipeline value_copier::fastest_encoding(const dataset_pair& d, const box_reader& reader, const numbers& needed) const {
  hdf5::pipeline fast = d.filters;
  hdf5::filter* const deflate = find_deflate(fast);
  hdf5::pipeline of_source = d.layout.filters;
  if (!deflate || deflate->values.empty() || deflate->values[0] < 2 || !d.chunks || d.change->has_chosen_filters ||
      !find_deflate(of_source) || needed.size() < min_chunks_for_trial)
    return fast;
  deflate->values[0] = 1;
  double before = 0, after = 0;
  for (const std::size_t i : {needed.size() / 3, 2 * needed.size() / 3}) {
    const array::box b = d.grid.box_of(d.grid.chunk_at(needed[i]));
    before += reader.stored_bytes(b);
    after += static_cast<double>(hdf5::apply(fast, reader.read(b)).size());
  }
  return after <= before ? fast : d.filters;
}

std::map<haddr_t, value_copier::estimate> value_copier::estimates() {
  std::map<haddr_t, estimate> result;
  for_each_dataset([&](const tree_object& o, const dataset_layout& l) {
    const dataset_pair d = open(o, l);
    const bool recoded = d.change && d.has_chunks && !l.linked_values;
    result[o.address] = recoded ? estimate_recoded(d) : estimate_copy(d);
  });
  return result;
}

value_copier::estimate value_copier::estimate_copy(const dataset_pair& d) const {
  estimate e{d.has_chunks ? d.layout.chunks : 0, d.layout.stored_bytes};
  if (!d.chunks || d.layout.linked_values || d.layout.chunks == 0) return e;
  const auto begun = std::chrono::steady_clock::now();
  std::uint64_t bytes = 0, count = 0;
  const std::uint64_t step = d.layout.chunks / samples + 1;
  d.chunks->for_each([&](const array::extents& index, std::uint64_t) {
    if (count++ % step == 0) bytes += d.chunks->read(d.chunks->locate(index)).size();
  });
  if (bytes > 0) e.seconds = seconds_since(begun) * static_cast<double>(e.bytes) / static_cast<double>(bytes);
  return e;
}

// Chunks of the copy, put together from all of the source's that they share values with, unless these are too many to read: then
// the ratio is that of the source.
value_copier::estimate value_copier::estimate_recoded(const dataset_pair& d) const {
  const numbers needed = needed_chunks(d);
  estimate e{needed.size(), 0};
  if (needed.empty()) return e;
  const box_reader reader(d);
  const hdf5::pipeline filters = fastest_encoding(d, reader, needed);
  const double all_elements = static_cast<double>(array::product(d.layout.dims)) * static_cast<double>(needed.size()) /
                              static_cast<double>(d.grid.chunks());  // chunks at the edge have fewer
  double decoding = 0, encoding = 0;                                 // seconds for an element
  if (d.chunks) {
    const array::extents place = d.chunks->grid().chunk_of(d.grid.start(d.grid.chunk_at(needed[needed.size() / 2])));
    const auto begun = std::chrono::steady_clock::now();
    const array::box one = d.chunks->grid().box_of(place);
    (void)reader.read(one);
    decoding = seconds_since(begun) / static_cast<double>(one.elements());
  }
  double sampled_bytes = 0, sampled_elements = 0;
  const std::size_t count = std::min<std::size_t>(samples, needed.size());
  for (std::size_t i = 0; i < count; ++i) {
    const array::box b = d.grid.box_of(d.grid.chunk_at(needed[needed.size() / count * i + needed.size() / count / 2]));
    if (d.chunks && array::saturating_mul(d.chunks->grid().chunks_over(b).elements(), d.source_chunk_bytes()) > max_sample_bytes)
      break;
    compressors::buffer values = reader.read(b);
    const auto begun = std::chrono::steady_clock::now();
    sampled_elements += static_cast<double>(b.elements());
    sampled_bytes += static_cast<double>(hdf5::apply(filters, std::move(values)).size());
    encoding += seconds_since(begun);
  }
  if (sampled_elements > 0) {
    e.bytes = static_cast<std::uint64_t>(sampled_bytes / sampled_elements * all_elements);
    encoding /= sampled_elements;
  } else {
    e.bytes = d.layout.stored_bytes;
  }
  e.seconds = (decoding + encoding) * all_elements;
  return e;
}

// Some regions at a time: all threads decode the source's chunks into them, then all encode the copy's chunks from them.
void value_copier::recode(const dataset_pair& d) {
  const std::uint64_t element = d.layout.element_bytes;
  const array::extents source_chunk = d.chunks ? d.chunks->grid().chunk : d.grid.chunk;
  const std::uint64_t largest = std::max(d.chunk_bytes(), array::saturating_mul(array::product(source_chunk), element));
  if (largest > options_.memory / 6)
    throw hdf5::failure("chunks of " + text::format_bytes(largest) + " need more than " + text::format_bytes(options_.memory) +
                        " to be decoded and encoded; increase `memory`");
  const array::extents counts = d.grid.counts();
  const auto within = [&](array::extents shape) {
    for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = std::min(shape[i], std::max<std::uint64_t>(d.layout.dims[i], 1));
    return shape;
  };
  const array::rechunk_plan plan = array::plan_rechunk({.array = d.layout.dims,
                                                        .source_chunk = within(source_chunk),
                                                        .target_object = within(d.grid.chunk),
                                                        .element = element,
                                                        .may_use_scratch = false},
                                                       options_.memory / 4);
  // each of the copy's chunks is complete in a region
  const array::chunk_grid regions{d.layout.dims, plan.region};
  const box_reader reader(d);
  const numbers needed = needed_chunks(d);
  const hdf5::pipeline filters = fastest_encoding(d, reader, needed);
  std::map<std::uint64_t, numbers> chunks_of_region;
  for (const std::uint64_t number : needed) {
    const array::extents region = regions.chunk_of(d.grid.start(array::unravel(number, counts)));
    chunks_of_region[array::ravel(region, regions.counts())].push_back(number);
  }
  // each thread has a chunk and what it becomes, and two of its results may wait
  const std::size_t threads = threads_for(4 * largest);
  const auto in_all_threads = [&](std::size_t count, const auto& make) {
    hdf5::detail::ordered_work(count, threads)
        .make_then_use([&](std::size_t i, std::size_t) { make(i); }, [](std::size_t, std::size_t) {});
  };
  struct region_values {
    array::box region, source_chunks;
    compressors::buffer values;
  };
  struct region_chunk {
    std::size_t place;  // of the region
    std::uint64_t number;
  };
  const std::uint64_t region_bytes = array::saturating_mul(regions.chunk_elements(), element);
  std::vector<region_values> in_work(static_cast<std::size_t>(
      std::clamp<std::uint64_t>(options_.memory / 4 / std::max<std::uint64_t>(region_bytes, 1), 1, chunks_of_region.size())));
  for (auto next = chunks_of_region.begin(); next != chunks_of_region.end();) {
    std::vector<region_chunk> sources, targets;
    std::size_t count = 0;
    for (; next != chunks_of_region.end() && count < in_work.size(); ++next, ++count) {
      region_values& r = in_work[count];
      r.region = regions.box_of(regions.chunk_at(next->first));
      if (d.chunks) r.source_chunks = d.chunks->grid().chunks_over(r.region);
      for (std::uint64_t i = 0; d.chunks && i < r.source_chunks.elements(); ++i) sources.push_back({count, i});
      for (const std::uint64_t number : next->second) targets.push_back({count, number});
    }
    in_all_threads(count, [&](std::size_t i) {
      reader.fill(in_work[i].values, in_work[i].region.elements());
      if (!d.chunks) reader.read_unchunked(in_work[i].values, in_work[i].region);
    });
    in_all_threads(sources.size(), [&](std::size_t i) {
      region_values& r = in_work[sources[i].place];
      array::extents index = array::unravel(sources[i].number, r.source_chunks.shape);
      for (std::size_t k = 0; k < index.size(); ++k) index[k] += r.source_chunks.first[k];
      reader.decode(index, r.values, r.region);
    });
    hdf5::detail::ordered_work encoding(targets.size(), threads);
    std::vector<compressors::buffer> encoded(encoding.places());
    encoding.make_then_use(
        [&](std::size_t i, std::size_t place) {
      const region_values& r = in_work[targets[i].place];
      const array::box of_chunk{d.grid.start(array::unravel(targets[i].number, counts)), d.grid.chunk};
      compressors::buffer chunk;
      reader.fill(chunk, d.grid.chunk_elements());
      array::copy_elements(r.values, r.region, chunk, of_chunk, array::intersect(of_chunk, r.region),
                           static_cast<std::size_t>(element));
      encoded[place] = hdf5::apply(filters, std::move(chunk));
        },
        [&](std::size_t i, std::size_t place) {
      const std::uint64_t number = targets[i].number;
      const auto first = hdf5::to_hsize(d.grid.start(array::unravel(number, counts)));
      {
        const hdf5::lock one_thread;
        hdf5::check(H5Dwrite_chunk(d.copy, H5P_DEFAULT, 0, first.data(), encoded[place].size(), encoded[place].data()),
                    "write a chunk");
      }
      encoded[place] = {};
      // in proportion, as the source's chunks have other shapes
      const std::uint64_t stored = d.layout.stored_bytes;
      add_progress(d, stored / needed.size() + (number == needed.front() ? stored % needed.size() : 0));
    });
  }
}

void value_copier::add_progress(const dataset_pair& d, std::uint64_t bytes) {
  done_ += bytes;
  if (options_.progress) options_.progress(text::escape_name(d.object.path), std::min(done_, total_), total_);
}

}  // namespace zarrbits::repacking
