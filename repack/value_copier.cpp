// SPDX-License-Identifier: BSL-1.0
#include "repack/value_copier.hpp"

#include "io/files.hpp"
#include "repack/dataset_copier.hpp"
#include "repack/recoder.hpp"
#include "text/name_escaping.hpp"

#include <map>
#include <memory>

namespace zarrbits::repacking {

dataset_pair value_copier::open(const tree_object& o, const dataset_layout& l) const {
  const auto change = changes_.find(o.address);
  auto part = std::make_shared<dataset_part>();
  part->dataset = open_object(source_.file.file(), o);
  part->filters = l.filters;
  part->has_values = l.stored_bytes > 0;
  part->place = {array::extents(l.dims.size(), 0), l.dims};
  if (l.layout == H5D_CHUNKED) part->chunks.emplace(source_.file, part->dataset);
  dataset_pair d{.path = o.path,
                 .layout = l,
                 .change = change == changes_.end() ? nullptr : &change->second,
                 .parts = {{part->place}, [part](std::size_t) { return part; }},
                 .copy = copies_.open_copy(o),
                 .type = hdf5::handle(H5Dget_type(part->dataset), "get the datatype")};
  d.describe_copy();
  if (part->chunks) d.largest_source_chunk_bytes = array::saturating_mul(part->chunks->grid().chunk_elements(), l.element_bytes);
  return d;
}

template <class Visit>
void value_copier::for_each_dataset(const Visit& visit) {
  for (const tree_object& o : source_.tree.objects) {
    if (o.kind != H5I_DATASET) continue;
    if (const auto change = changes_.find(o.address); change != changes_.end() && change->second.has_values_elsewhere()) continue;
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
    dataset_copier::require_filters(d);
    if (d.has_chunks) reserve_index(d);
  });
}

void value_copier::run() {
  std::uint64_t total = 0;
  for (const auto& [address, l] : source_.contents.datasets) total += l.stored_bytes;
  dataset_copier copier(options_, &copies_.references(), total);
  for_each_dataset([&](const tree_object& o, const dataset_layout& l) {
    if (l.linked_values && l.layout != H5D_VIRTUAL) copier.run(open(o, l));
  });
  for (const bool chunked : {false, true}) {
    for_each_dataset([&](const tree_object& o, const dataset_layout& l) {
      if (l.linked_values || l.layout == H5D_VIRTUAL) return;
      const dataset_pair d = open(o, l);
      if (d.has_chunks != chunked) return;
      const hdf5::handle properties(H5Dget_create_plist(d.parts.open(0)->dataset), "get the properties");
      if (H5Pget_external_count(properties) == 0) copier.run(d);
    });
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
  if (d.keeps_chunks()) return d.parts.open(0)->chunks->for_each(insert);
  const std::uint64_t size = d.filters.empty() ? d.chunk_bytes() : 1;
  for (const std::uint64_t number : d.needed_chunks()) insert(d.grid.chunk_at(number), size);
}

std::map<haddr_t, copy_estimate> value_copier::estimates() {
  std::map<haddr_t, copy_estimate> result;
  for_each_dataset([&](const tree_object& o, const dataset_layout& l) {
    const dataset_pair d = open(o, l);
    const bool recoded = !d.keeps_chunks() && d.has_chunks && !l.linked_values;
    result[o.address] = recoded ? recoder(d, options_, d.needed_chunks()).estimate() : estimate_copied(d);
  });
  return result;
}

}  // namespace zarrbits::repacking
