// SPDX-License-Identifier: BSL-1.0
#include "repack/stored_chunks.hpp"

#include "hdf5/chunk_index.hpp"

#include <utility>

namespace zarrbits::repacking {

stored_chunks::stored_chunks(const hdf5::source_file& file, hid_t dataset) : file_(file), dataset_(dataset) {
  grid_.shape = hdf5::extent(hdf5::handle(H5Dget_space(dataset), "get the dataspace"));
  grid_.chunk = hdf5::chunk_extent(hdf5::handle(H5Dget_create_plist(dataset), "get the properties"));
  if (grid_.chunk.size() != grid_.shape.size()) throw hdf5::failure("its chunks do not fit its dataspace");
}

void stored_chunks::for_each(const std::function<void(const array::extents&, std::uint64_t)>& visit) const {
  hdf5::for_each_stored_chunk(dataset_, grid_, visit);
}

located_chunk stored_chunks::locate(const array::extents& index) const {
  located_chunk place;
  const array::extents first = grid_.start(index);
  place.size = hdf5::stored_size(dataset_, first);
  if (place.size == 0) return place;
  if (const auto range = file_.bytes()->chunks().find(dataset_, first, place.mask)) {
    place.offset = range->offset;
    place.size = range->size;
    file_.bytes()->require_range(range->offset, range->size);
    return place;
  }
  place.bytes.resize(static_cast<std::size_t>(place.size));
  hdf5::check(H5Dread_chunk(dataset_, H5P_DEFAULT, hdf5::to_hsize(first).data(), &place.mask, place.bytes.data()),
              "read a stored chunk");
  return place;
}

compressors::buffer stored_chunks::read(located_chunk place) const {
  if (!place.offset) return std::move(place.bytes);
  compressors::buffer bytes(static_cast<std::size_t>(place.size));
  file_.bytes()->read(*place.offset, bytes);
  return bytes;
}

}  // namespace zarrbits::repacking
