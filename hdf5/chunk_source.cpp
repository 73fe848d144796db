// SPDX-License-Identifier: BSL-1.0
#include "hdf5/chunk_source.hpp"

#include "hdf5/attributes.hpp"
#include "hdf5/chunk_index.hpp"
#include "text/format.hpp"

#include <algorithm>

namespace zarrbits::hdf5 {

void chunk_source::use_grid(array::chunk_grid chunks, array::chunk_grid of_shards, bool rechunked) {
  grid = std::move(chunks);
  shards = std::move(of_shards);
  rechunked_ = rechunked;
}

array::extents chunk_source::chunk_shape() const {
  if (layout == H5D_CHUNKED && (dims.empty() || chunk_in_file.size() != dims.size()))
    throw unsupported_dataset(reason_code::damaged, "the chunk shape does not fit the dataspace");
  return chunk_in_file;
}

bool chunk_source::can_be_walked() const { return hdf5::can_be_walked(grid, dataset); }

bool chunk_source::nothing_stored() const {
  return (layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED) && !external && stored_bytes == 0;
}

std::uint64_t chunk_source::visit_all(std::uint64_t first, std::uint64_t count, const chunk_visitor& visit) const {
  array::for_each_chunk(shards, first, count, visit);
  return 0;
}

std::shared_ptr<const io::byte_source> chunk_source::bytes_of(std::size_t) const { return bytes->source(); }

void chunk_source::read_block(hid_t memory, std::size_t size, const array::extents& first, const array::extents& count,
                              const array::extents& out_shape, compressors::buffer& out, vlen_allocator* strings,
                              const array::extents& corner) const {
  if (out.size() < array::product(out_shape) * size)
    throw unsupported_dataset(reason_code::too_large, "a block that does not fit in memory");
  read_values(memory, size, first, count, out_shape, out, strings, corner);
}

void chunk_source::count_variable(std::uint64_t read) const {
  constexpr std::uint64_t max_ratio = 1000;
  const std::uint64_t total = variable_bytes_ += read;
  if (total <= file.largest_expansion()) return;
  const lock one_thread;
  hsize_t size = 0;
  const handle file_handle(H5Iget_file_id(dataset));
  if (H5Fget_filesize(file_handle, &size) >= 0 && total / max_ratio <= size) return;
  throw unsupported_dataset(reason_code::too_large,
                            "its strings or sequences are more than " + text::format_bytes(total) +
                                ", more than 1,000 times as much as the file, and more than `memory` allows; use "
                                "`allow_expansion` if the file can be trusted");
}

bool chunk_source::is_chunk_lossy(const array::extents& index) const {
  const lock one_thread;
  const std::size_t size = element_size;
  compressors::buffer raw(static_cast<std::size_t>(grid.chunk_elements(index)) * size, std::byte{0});
  try {
    read_block(stored_type, size, grid.start(index), grid.inside(index), grid.extent(index), raw);
  } catch (const failure&) {
    return true;
  }
  const handle base = [&] {
    handle t(H5Tcopy(stored_type));
    while (H5Tget_class(t) == H5T_ARRAY) t = handle(H5Tget_super(t));
    return t;
  }();
  return is_conversion_lossy(base, leaf().memory, raw, raw.size() / H5Tget_size(base));
}

}  // namespace zarrbits::hdf5
