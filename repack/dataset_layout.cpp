// SPDX-License-Identifier: BSL-1.0
#include "repack/dataset_layout.hpp"

#include "repack/reference_map.hpp"
#include "repack/stored_chunks.hpp"
#include "text/name_escaping.hpp"

#include <algorithm>
#include <limits>

namespace zarrbits::repacking {

namespace {

constexpr std::uint64_t max_sparse_bytes = 1U << 30;
constexpr std::uint64_t max_expansion = 1000;  // of the bytes of a dataset to those that are stored
constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

dataset_layout read_layout(const hdf5::source_file& file, hid_t dataset) {
  hdf5::chunk_locator locator = file.bytes()->chunks();
  dataset_layout l;
  const hdf5::handle properties(H5Dget_create_plist(dataset), "get the properties");
  const hdf5::handle type(H5Dget_type(dataset), "get the datatype"), space(H5Dget_space(dataset), "get the dataspace");
  l.layout = H5Pget_layout(properties);
  l.element_bytes = H5Tget_size(type);
  l.linked_values = reference_map::has_linked_values(type);
  l.can_be_filtered = H5Tget_class(type) != H5T_VLEN && H5Tis_variable_str(type) <= 0;
  if (H5Sget_simple_extent_type(space) == H5S_SIMPLE) {
    l.dims = hdf5::extent(space);
    l.max_dims = hdf5::maximum_extent(space);
  }
  if (l.layout != H5D_CHUNKED) {
    l.stored_bytes = H5Dget_storage_size(dataset);
    // without storage, libhdf5 adds the size of the user block to no address
    if (l.layout != H5D_CONTIGUOUS || l.stored_bytes == 0 || H5Pget_external_count(properties) > 0) return l;
    if (const haddr_t address = H5Dget_offset(dataset); address != HADDR_UNDEF) l.first_value = address;
    H5Eclear2(H5E_DEFAULT);
    return l;
  }
  l.chunk = hdf5::chunk_extent(properties);
  l.filters = hdf5::read_pipeline(properties);
  if (!l.linked_values) {
    l.can_decode = l.filters.can_decode(hdf5::describe_type(type));
    l.can_encode = hdf5::can_apply(l.filters);
  }
  const stored_chunks chunks(file, dataset);
  locator.take_last_metadata();
  std::uint64_t first = nowhere;
  chunks.for_each([&](const array::extents& index, std::uint64_t size) {
    ++l.chunks;
    l.stored_bytes += size;
    unsigned mask = 0;
    if (const auto range = locator.find(dataset, chunks.grid().start(index), mask)) first = std::min(first, range->offset);
  });
  l.last_index = locator.take_last_metadata();
  if (first != nowhere) l.first_value = first;
  return l;
}

herr_t read_no_attribute(hid_t, const char*, const H5A_info_t*, void*) { return 0; }

template <class Include>
std::uint64_t first_of(const std::map<haddr_t, dataset_layout>& datasets, const Include& include) {
  std::uint64_t first = nowhere;
  for (const auto& [address, l] : datasets) {
    if (l.first_value && include(l)) first = std::min(first, *l.first_value);
  }
  return first;
}

}  // namespace

std::uint64_t file_contents::first_value() const {
  return first_of(datasets, [](const dataset_layout&) { return true; });
}

std::uint64_t file_contents::first_chunk() const {
  return first_of(datasets, [](const dataset_layout& l) { return l.layout == H5D_CHUNKED; });
}

bool is_mostly_unwritten(std::uint64_t bytes, std::uint64_t stored_bytes) {
  return bytes > max_sparse_bytes && bytes / max_expansion > stored_bytes;
}

file_contents read_contents(const hdf5::source_file& file, const file_tree& tree) {
  file_contents contents;
  hdf5::chunk_locator locator = file.bytes()->chunks();
  const auto note_metadata = [&] { contents.last_metadata = std::max(contents.last_metadata, locator.take_last_metadata()); };
  for (const tree_object& o : tree.objects) {
    try {
      const hdf5::handle object = open_object(file.file(), o);
      hsize_t position = 0;  // attributes may be in a heap, which is metadata, too
      hdf5::check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &position, read_no_attribute, nullptr), "list attributes");
      note_metadata();
      if (o.kind != H5I_DATASET) continue;
      const dataset_layout l = read_layout(file, object);
      contents.last_metadata = std::max(contents.last_metadata, l.last_index);
      contents.datasets.emplace(o.address, l);
    } catch (const hdf5::failure& e) {
      throw hdf5::failure("\"" + text::escape_name(o.path) + "\": " + e.what());
    }
  }
  note_metadata();
  return contents;
}

}  // namespace zarrbits::repacking
