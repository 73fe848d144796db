// SPDX-License-Identifier: BSL-1.0
#include "repack/dataset_pair.hpp"

#include <algorithm>

namespace zarrbits::repacking {

namespace {

constexpr std::uint64_t piece_bytes = 16U << 20;  // of values without chunks, read at once

// No decoder needs the level of deflate.
bool are_decoded_alike(std::vector<hdf5::filter> a, std::vector<hdf5::filter> b) {
  for (std::vector<hdf5::filter>* list : {&a, &b}) {
    for (hdf5::filter& f : *list) {
      if (f.id == H5Z_FILTER_DEFLATE) f.values.clear();
    }
  }
  return are_same_filters(a, b);
}

}  // namespace

void dataset_pair::describe_copy() {
  const hdf5::handle properties(H5Dget_create_plist(copy), "get the properties");
  filters = hdf5::read_pipeline(properties);
  has_chunks = H5Pget_layout(properties) == H5D_CHUNKED;
  grid.shape = layout.dims;
  grid.chunk = hdf5::chunk_extent(properties);
  if (grid.chunk.empty() && !layout.dims.empty())
    grid.chunk = array::chunk_shape_for(layout.dims, layout.element_bytes, piece_bytes);
}

void make_unique(std::vector<std::uint64_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

bool dataset_pair::keeps_chunks_of(const dataset_part& part) const {
  return keeps_chunks() && part.chunks && part.chunk_shape() == grid.chunk &&
         are_decoded_alike(part.filters.filters, filters.filters);
}

// A partial chunk has values beyond the edge of its part, which mean nothing, so the copy has to end there, too.
bool dataset_pair::keeps_chunk(const dataset_part& part, const array::extents& index) const {
  if (part.filters.partial_unfiltered != filters.partial_unfiltered && part.chunks->grid().is_partial(index)) return false;
  const array::box chunk = part.box_of(index);
  for (std::size_t i = 0; i < grid.rank(); ++i) {
    const std::uint64_t end = part.place.first[i] + part.place.shape[i];
    if (chunk.first[i] % grid.chunk[i] != 0) return false;
    if (chunk.first[i] + chunk.shape[i] > end && end != grid.shape[i]) return false;
  }
  return true;
}

void dataset_pair::add_chunks_over(const array::box& b, std::vector<std::uint64_t>& numbers) const {
  if (b.empty()) return;
  const array::extents counts = grid.counts();
  array::for_each_index(grid.chunks_over(b), [&](const array::extents& index) {
    const std::uint64_t number = array::ravel(index, counts);
    if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
  });
}

std::vector<std::uint64_t> dataset_pair::needed_chunks(const dataset_part& part) const {
  std::vector<std::uint64_t> needed;
  if (part.chunks)
    part.chunks->for_each([&](const array::extents& index, std::uint64_t) { add_chunks_over(part.inside(index), needed); });
  else if (part.has_values) add_chunks_over(part.place, needed);
  make_unique(needed);
  return needed;
}

std::vector<std::uint64_t> dataset_pair::needed_chunks() const {
  std::vector<std::uint64_t> needed;
  for (std::size_t i = 0; i < parts.places.size(); ++i) {
    const std::vector<std::uint64_t> of_part = needed_chunks(*parts.open(i));
    needed.insert(needed.end(), of_part.begin(), of_part.end());
  }
  if (parts.places.size() > 1) make_unique(needed);
  return needed;
}

hdf5::handle space_of(const array::extents& shape) {
  return {shape.empty() ? H5Screate(H5S_SCALAR)
                        : H5Screate_simple(static_cast<int>(shape.size()), hdf5::to_hsize(shape).data(), nullptr),
          "create a dataspace"};
}

hdf5::handle selected_space(hid_t dataset, const array::box& b) {
  hdf5::handle space(H5Dget_space(dataset), "get the dataspace");
  if (b.first.empty()) return space;
  hdf5::check(H5Sselect_hyperslab(space, H5S_SELECT_SET, hdf5::to_hsize(b.first).data(), nullptr, hdf5::to_hsize(b.shape).data(),
                                  nullptr),
              "select values");
  return space;
}

}  // namespace zarrbits::repacking
