// SPDX-License-Identifier: BSL-1.0
#include "repack/box_reader.hpp"

#include "hdf5/chunk_form.hpp"
#include "hdf5/external_files.hpp"

#include <algorithm>

namespace zarrbits::repacking {

namespace {

located_chunk locate_alone(const dataset_part& part, const array::extents& index) {
  const hdf5::lock one_thread;
  const hdf5::silence quiet;  // of this thread
  return part.chunks->locate(index);
}

std::string chunk_name(const dataset_part& part, const array::extents& index) {
  return "chunk " + array::joined_text(index, '/') + (part.name.empty() ? "" : " of \"" + part.name + "\"");
}

}  // namespace

box_reader::box_reader(const dataset_pair& d)
    : dataset_(d),
      type_(hdf5::describe_type(d.type)),
      fill_(hdf5::fill_bytes(hdf5::handle(H5Dget_create_plist(d.copy), "get the properties"), d.type)) {}

void box_reader::fill(compressors::buffer& values, std::uint64_t elements) const {
  values.resize(static_cast<std::size_t>(elements * dataset_.layout.element_bytes));
  if (fill_.empty()) std::fill(values.begin(), values.end(), std::byte{0});
  else array::fill_elements(values, std::as_bytes(std::span(fill_)));
}

// Calls `visit(part, box)` with what each part and the box share.
template <class Visit>
void box_reader::for_each_part(const array::box& b, const Visit& visit) const {
  for (std::size_t i = 0; i < dataset_.parts.places.size(); ++i) {
    const array::box shared = array::intersect(dataset_.parts.places[i], b);
    if (!shared.empty()) visit(*dataset_.parts.open(i), shared);
  }
}

compressors::buffer box_reader::read(const array::box& b) const {
  compressors::buffer values;
  fill(values, b.elements());
  for_each_part(b, [&](const dataset_part& part, const array::box& shared) {
    if (!part.chunks) return read_unchunked(part, values, b);
    array::for_each_index(part.chunks_over(shared), [&](const array::extents& index) { decode(part, index, values, b); });
  });
  return values;
}

void box_reader::read_unchunked(const dataset_part& part, compressors::buffer& values, const array::box& b) const {
  const array::box shared = array::intersect(part.place, b), local = part.local(shared);
  const bool is_all = shared == b;
  compressors::buffer own(is_all ? 0 : static_cast<std::size_t>(shared.elements() * dataset_.layout.element_bytes));
  {
    const hdf5::lock one_thread;
    const hdf5::silence quiet;  // of this thread
    hdf5::check_read(H5Dread(part.dataset, dataset_.type, space_of(local.shape), selected_space(part.dataset, local), H5P_DEFAULT,
                             is_all ? values.data() : own.data()),
                     part.dataset, "read values");
  }
  if (!is_all) array::copy_elements(own, shared, values, b, shared, static_cast<std::size_t>(dataset_.layout.element_bytes));
}

void box_reader::decode(const dataset_part& part, const array::extents& index, compressors::buffer& values,
                        const array::box& b) const {
  try {
    decode_chunk(part, index, values, b);
  } catch (const compressors::corrupt_chunk& e) {
    throw compressors::corrupt_chunk(chunk_name(part, index) + ": " + e.what());
  }
}

void box_reader::decode_chunk(const dataset_part& part, const array::extents& index, compressors::buffer& values,
                              const array::box& b) const {
  located_chunk place = locate_alone(part, index);
  if (place.size == 0) return;
  const std::uint64_t element = dataset_.layout.element_bytes;
  const array::chunk_grid& grid = part.chunks->grid();
  const unsigned mask = part.filters.partial_unfiltered && grid.is_partial(index) ? ~0U : place.mask;
  const compressors::buffer chunk = hdf5::undo(part.filters, mask, part.chunks->read(std::move(place)),
                                               static_cast<std::size_t>(grid.chunk_elements() * element), type_);
  array::copy_elements(chunk, part.box_of(index), values, b, array::intersect(part.inside(index), b),
                       static_cast<std::size_t>(element));
}

double box_reader::stored_bytes(const array::box& b) const {
  double bytes = 0;
  for_each_part(b, [&](const dataset_part& part, const array::box& shared) {
    array::for_each_index(part.chunks_over(shared), [&](const array::extents& index) {
      const array::box chunk = part.inside(index);
      bytes += static_cast<double>(locate_alone(part, index).size) * static_cast<double>(array::intersect(chunk, b).elements()) /
               static_cast<double>(chunk.elements());
    });
  });
  return bytes;
}

}  // namespace zarrbits::repacking
