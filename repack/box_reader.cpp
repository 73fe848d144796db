// SPDX-License-Identifier: BSL-1.0
#include "repack/box_reader.hpp"

#include "hdf5/chunk_form.hpp"

#include <algorithm>

namespace zarrbits::repacking {

box_reader::box_reader(const dataset_pair& d)
    : dataset_(d),
      type_(hdf5::describe_type(d.type)),
      fill_(hdf5::fill_bytes(hdf5::handle(H5Dget_create_plist(d.copy), "get the properties"), d.type)) {}

void box_reader::fill(compressors::buffer& values, std::uint64_t elements) const {
  values.resize(static_cast<std::size_t>(elements * dataset_.layout.element_bytes));
  if (fill_.empty()) std::fill(values.begin(), values.end(), std::byte{0});
  else array::fill_elements(values, std::as_bytes(std::span(fill_)));
}

compressors::buffer box_reader::read(const array::box& b) const {
  compressors::buffer values;
  fill(values, b.elements());
  if (!dataset_.chunks) read_unchunked(values, b);
  else
    array::for_each_index(dataset_.chunks->grid().chunks_over(b), [&](const array::extents& index) { decode(index, values, b); });
  return values;
}

void box_reader::read_unchunked(compressors::buffer& values, const array::box& b) const {
  const hdf5::lock one_thread;
  const hdf5::silence quiet;  // of this thread
  hdf5::check(
      H5Dread(dataset_.source, dataset_.type, space_of(b.shape), selected_space(dataset_.source, b), H5P_DEFAULT, values.data()),
      "read values");
}

void box_reader::decode(const array::extents& index, compressors::buffer& values, const array::box& b) const {
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

double box_reader::stored_bytes(const array::box& b) const {
  double bytes = 0;
  const array::chunk_grid& grid = dataset_.chunks->grid();
  array::for_each_index(grid.chunks_over(b), [&](const array::extents& index) {
    const array::box shared = array::intersect(grid.box_of(index), b);
    bytes += static_cast<double>(locate(index).size) * static_cast<double>(shared.elements()) /
             static_cast<double>(grid.box_of(index).elements());
  });
  return bytes;
}

located_chunk box_reader::locate(const array::extents& index) const {
  const hdf5::lock one_thread;
  const hdf5::silence quiet;  // of this thread
  return dataset_.chunks->locate(index);
}

}  // namespace zarrbits::repacking
