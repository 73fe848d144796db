// SPDX-License-Identifier: BSL-1.0
#include "repack/dataset_copier.hpp"

#include "hdf5/external_files.hpp"
#include "hdf5/filter_table.hpp"
#include "hdf5/registered_decoders.hpp"
#include "hdf5/vlen_allocator.hpp"
#include "repack/recoder.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"

#include <zarrbits/detail/ordered_work.hpp>

#include <algorithm>
#include <utility>

namespace zarrbits::repacking {

namespace {

// References, texts, and sequences of numbers and texts.
bool has_plain_sequences(hid_t type) {
  if (H5Tget_class(type) != H5T_VLEN) return H5Tget_class(type) == H5T_STRING || H5Tget_class(type) == H5T_REFERENCE;
  const hdf5::handle base(H5Tget_super(type), "get the base of a datatype");
  return !reference_map::has_linked_values(base) || has_plain_sequences(base);
}

}  // namespace

// libhdf5 reads and writes values of variable length.
void dataset_copier::require_filters_of_library(const dataset_pair& d) {
  const hdf5::handle properties(H5Dget_create_plist(d.copy), "get the properties");
  for (const hdf5::filter& f : d.filters.filters) {
    unsigned config = 0, flags = 0;
    std::size_t values = 0;
    hdf5::check(H5Pget_filter_by_id2(properties, f.id, &flags, &values, nullptr, 0, nullptr, nullptr), "get a filter");
    if ((flags & H5Z_FLAG_OPTIONAL) != 0) continue;  // chunks are stored without it
    const bool encodes =
        H5Zfilter_avail(f.id) > 0 && H5Zget_filter_info(f.id, &config) >= 0 && (config & H5Z_FILTER_CONFIG_ENCODE_ENABLED) != 0;
    H5Eclear2(H5E_DEFAULT);
    if (!encodes)
      throw hdf5::failure("libhdf5 has no encoder of filter " + hdf5::filter_name(f) +
                          ", which its values of variable length need; add the folder of its plugin to HDF5_PLUGIN_PATH");
  }
}

void dataset_copier::require_filters(const dataset_pair& d) {
  if (d.layout.linked_values) return require_filters_of_library(d);
  if (!d.keeps_chunks()) require_recodable(d, *d.parts.open(0));
}

void dataset_copier::require_recodable(const dataset_pair& d, const dataset_part& part) {
  const auto refuse = [&](const std::string& what) {
    const std::string remedy = "; add the folder of its plugin to HDF5_PLUGIN_PATH, or ";
    throw hdf5::failure(what + (d.has_several_files
                                    ? ", which chunks need that do not begin and end as the files do" + remedy +
                                          "join the files in a file of virtual datasets"
                                    : ", which its new chunks need" + remedy + "choose other filters with `filters`"));
  };
  if (const hdf5::type_description type = hdf5::describe_type(d.type); part.chunks && !part.filters.can_decode(type))
    refuse("there is no decoder of filter " + part.filters.unavailable_filters(type));
  for (const hdf5::filter& f : d.filters.filters) {
    if (!hdf5::can_apply(f)) refuse("there is no encoder of filter " + hdf5::filter_name(f));
  }
}

void dataset_copier::run(const dataset_pair& d) {
  copied_ = 0;
  if (d.layout.linked_values) copy_linked(d);
  else if (d.has_chunks) copy_chunked(d);
  else copy_unchunked(d);
}

// By libhdf5, chunk by chunk, or in pieces.
void dataset_copier::copy_linked(const dataset_pair& d) {
  for (std::size_t i = 0; i < d.parts.places.size(); ++i) {
    const auto part = d.parts.open(i);
    hdf5::register_decoders(hdf5::handle(H5Dget_create_plist(part->dataset), "get the properties"),
                            hdf5::missing_encoder::leave_out);
    if (d.layout.dims.empty()) {
      if (part->has_values) copy_linked_box(d, *part, {});
      continue;
    }
    for (const std::uint64_t number : d.needed_chunks(*part))
      copy_linked_box(d, *part, array::intersect(d.grid.box_of(d.grid.chunk_at(number)), part->place));
  }
}

void dataset_copier::copy_linked_box(const dataset_pair& d, const dataset_part& part, const array::box& b) {
  const std::uint64_t elements = b.first.empty() ? 1 : b.elements();
  if (H5Sget_simple_extent_type(hdf5::handle(H5Dget_space(part.dataset), "get the dataspace")) == H5S_NULL || elements == 0)
    return;
  const std::uint64_t bytes = array::saturating_mul(elements, H5Tget_size(d.type));
  if (bytes > options_.memory / 2)
    throw hdf5::failure("a chunk of " + text::format_bytes(bytes) + ", more than half of `memory`; increase it");
  std::vector<std::byte> values(static_cast<std::size_t>(bytes));
  hdf5::vlen_allocator strings(options_.memory / 2);
  const array::box local = part.local(b);
  if (H5Dread(part.dataset, d.type, space_of(local.shape), selected_space(part.dataset, local), strings.transfer(),
              values.data()) < 0) {
    if (strings.exceeded()) {
      H5Eclear2(H5E_DEFAULT);
      throw hdf5::failure("a chunk whose strings or sequences take more than half of `memory`; increase it");
    }
    hdf5::fail("read values");
  }
  if (references_) references_->translate(d.type, values.data(), elements);
  hdf5::check(H5Dwrite(d.copy, d.type, space_of(b.shape), selected_space(d.copy, b), H5P_DEFAULT, values.data()), "write values");
  if (!has_plain_sequences(d.type) && !was_written(d, b, values)) {
    write_one_by_one(d, b, values);
    if (!was_written(d, b, values)) throw hdf5::failure("libhdf5 cannot write values of its datatype");
  }
  add_progress(d, bytes);
}

// libhdf5 1.10 writes zeros into sequences of compounds that are in compounds, if it writes several values at once.
bool dataset_copier::was_written(const dataset_pair& d, const array::box& b, const std::vector<std::byte>& values) const {
  std::vector<std::byte> read(values.size());
  hdf5::vlen_allocator strings(options_.memory / 2);
  const hdf5::handle memory = space_of(b.shape);
  hdf5::check(H5Dread(d.copy, d.type, memory, selected_space(d.copy, b), strings.transfer(), read.data()), "read values again");
  return reference_map::are_equal(d.type, values.data(), read.data(), values.size() / H5Tget_size(d.type));
}

void dataset_copier::write_one_by_one(const dataset_pair& d, const array::box& b, const std::vector<std::byte>& values) const {
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

void dataset_copier::copy_unchunked(const dataset_pair& d) {
  std::vector<std::byte> values;
  const auto copy_box = [&](const dataset_part& part, const array::box& b) {
    const std::uint64_t bytes = array::saturating_mul(b.first.empty() ? 1 : b.elements(), d.layout.element_bytes);
    if (bytes == 0) return;
    values.resize(static_cast<std::size_t>(bytes));
    const array::box local = part.local(b);
    hdf5::check_read(
        H5Dread(part.dataset, d.type, space_of(local.shape), selected_space(part.dataset, local), H5P_DEFAULT, values.data()),
        part.dataset, "read values");
    hdf5::check(H5Dwrite(d.copy, d.type, space_of(b.shape), selected_space(d.copy, b), H5P_DEFAULT, values.data()),
                "write values");
    add_progress(d, bytes);
  };
  for (std::size_t i = 0; i < d.parts.places.size(); ++i) {
    const auto part = d.parts.open(i);
    if (!part->has_values) continue;
    if (d.layout.dims.empty()) copy_box(*part, {});
    else
      array::for_each_index(d.grid.chunks_over(part->place), [&](const array::extents& index) {
        copy_box(*part, array::intersect(d.grid.box_of(index), part->place));
      });
  }
}

// Chunks of the parts that are chunks of the copy, too, are copied; the other values of the parts are decoded and encoded.
void dataset_copier::copy_chunked(const dataset_pair& d) {
  std::vector<std::uint64_t> needed;
  for (std::size_t i = 0; i < d.parts.places.size(); ++i) {
    const auto part = d.parts.open(i);
    bool is_encoded = !part->chunks && part->has_values;
    if (part->chunks) {
      std::vector<stored_chunk> kept;
      const bool can_keep = d.keeps_chunks_of(*part);
      const array::extents counts = part->chunks->grid().counts();
      part->chunks->for_each([&](const array::extents& index, std::uint64_t size) {
        if (can_keep && d.keeps_chunk(*part, index)) kept.push_back({array::ravel(index, counts), size});
        else is_encoded = true, add_needed(d, part->inside(index), needed);
      });
      copy_chunks(d, *part, kept);
      copied_chunks_ += kept.size();
    } else if (is_encoded) {
      add_needed(d, part->place, needed);
    }
    if (is_encoded) require_recodable(d, *part);
  }
  make_unique(needed);
  encoded_chunks_ += needed.size();
  if (!needed.empty()) recode(d, std::move(needed));
}

// The chunks of one file may be far smaller than those of another.
void dataset_copier::add_needed(const dataset_pair& d, const array::box& b, std::vector<std::uint64_t>& needed) const {
  if (b.empty()) return;
  const std::uint64_t limit = options_.memory / 4 / sizeof needed[0];
  const auto exceeds = [&] { return needed.size() + d.grid.chunks_over(b).elements() > limit; };
  if (d.has_several_files && exceeds()) {
    make_unique(needed);
    if (exceeds())
      throw hdf5::failure("more than " + std::to_string(limit) + " chunks of " + text::format_bytes(d.chunk_bytes()) +
                          " need to be encoded, too many for `memory`; increase it");
  }
  d.add_chunks_over(b, needed);
}

void dataset_copier::copy_chunks(const dataset_pair& d, const dataset_part& part, const std::vector<stored_chunk>& chunks) {
  std::uint64_t largest = 0;
  for (const stored_chunk& c : chunks) largest = std::max(largest, c.size);
  struct loaded_chunk {
    compressors::buffer bytes;
    unsigned mask = 0;
  };
  const array::extents counts = part.chunks->grid().counts();
  hdf5::detail::ordered_work work(chunks.size(), threads_for(options_, largest));
  std::vector<loaded_chunk> loaded(work.places());
  work.make_then_use(
      [&](std::size_t i, std::size_t place) {
    located_chunk chunk;
    {
      const hdf5::lock one_thread;
      const hdf5::silence quiet;  // of this thread
      chunk = part.chunks->locate(array::unravel(chunks[i].number, counts));
    }
    loaded[place].mask = chunk.mask;
    loaded[place].bytes = part.chunks->read(std::move(chunk));
      },
      [&](std::size_t i, std::size_t place) {
    const auto first = hdf5::to_hsize(part.box_of(array::unravel(chunks[i].number, counts)).first);
    {
      const hdf5::lock one_thread;
      hdf5::check(H5Dwrite_chunk(d.copy, H5P_DEFAULT, loaded[place].mask, first.data(), loaded[place].bytes.size(),
                                 loaded[place].bytes.data()),
                  "write a chunk");
    }
    copied_ += loaded[place].bytes.size();
    add_progress(d, loaded[place].bytes.size());
  });
}

void dataset_copier::recode(const dataset_pair& d, std::vector<std::uint64_t> needed) {
  const std::uint64_t begin = done_, bytes = d.layout.stored_bytes - std::min(copied_, d.layout.stored_bytes);
  double share = 0;
  recoder(d, options_, std::move(needed)).run([&](double more) {
    share += more;
    done_ = begin;  // in proportion, as the source's chunks have other shapes
    add_progress(d, static_cast<std::uint64_t>(share * static_cast<double>(bytes)));
  });
  done_ = begin;
  add_progress(d, bytes);
}

void dataset_copier::add_progress(const dataset_pair& d, std::uint64_t bytes) {
  done_ += bytes;
  if (options_.progress) options_.progress(text::escape_name(d.path), std::min(done_, total_), total_);
}

}  // namespace zarrbits::repacking
