// SPDX-License-Identifier: BSL-1.0
#include "hdf5/source_dataset.hpp"

#include "hdf5/chunk_index.hpp"
#include "hdf5/external_files.hpp"
#include "hdf5/source_files.hpp"
#include "io/files.hpp"
#include "text/format.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <span>

namespace zarrbits::hdf5 {

namespace {

constexpr std::uint64_t largest_file = std::numeric_limits<std::int64_t>::max();

}  // namespace

source_dataset::source_dataset(opened_dataset opened) : chunk_source(std::move(opened)) {
  if (type.kind != type_class::text || !type.variable) return;
  string_blocks_.emplace(dataset);
  if (external || file.swmr()) return;
  std::size_t address = 8, length = 8;
  hsize_t user_block = 0;
  const handle creation(H5Fget_create_plist(handle(H5Iget_file_id(dataset), "tell the file")), "tell the properties");
  H5Pget_sizes(creation, &address, &length);
  check(H5Pget_userblock(creation, &user_block), "tell the size of the user block");
  const heap_format format{bytes->source().get(), bytes->state().size, user_block, address, length};
  if (format.element_size() == element_in_file) heap_ = format;
}

std::uint64_t source_dataset::max_stored_chunks() const {
  if (!can_reuse_chunks()) return chunk_source::max_stored_chunks();
  hsize_t stored = 0;
  const std::uint64_t total = grid.chunks();
  const handle extent(H5Dget_space(dataset), "tell the dataspace");
  return H5Dget_num_chunks(dataset, extent, &stored) < 0 ? total : std::min<std::uint64_t>(total, stored);
}

std::uint64_t source_dataset::visit_stored(std::uint64_t first, std::uint64_t count, const stored_visitor& visit) const {
  for_each_stored_chunk(dataset, grid, shards, first, count, [&](const array::extents& index, std::uint64_t size) {
    return !is_stored(grid.start(index), size) || visit(index, size);
  });
  return 0;
}

std::uint64_t source_dataset::stored_size(const array::extents& first) const {
  const std::uint64_t size = hdf5::stored_size(dataset, first);
  return is_stored(first, size) ? size : 0;
}

bool source_dataset::is_stored(const array::extents& first, std::uint64_t size) const {
  if (size == 0 || !filters.empty()) return size > 0;
  unsigned mask = 0;
  if (bytes->chunks().find(dataset, first, mask)) return true;
  try {
    find_chunk(first, size);
  } catch (const failure& e) {
    return std::string_view(e.what()).find("chunk address isn't defined") == std::string_view::npos;
  } catch (const compressors::corrupt_chunk&) {  // it is stored, and whoever reads it tells
  }
  return true;
}

void source_dataset::read_values(hid_t memory, std::size_t size, const array::extents& first, const array::extents& count,
                                 const array::extents& out_shape, compressors::buffer& out, vlen_allocator* strings,
                                 const array::extents& corner) const {
  if (!dependencies->obstacle.empty()) throw unsupported_dataset(dependencies->obstacle);
  if (strings && corner.empty() && size == sizeof(char*) && read_strings(first, count, out_shape, out, *strings)) return;
  require_whole_chunks(first, count);
  const lock one_thread;
  const hid_t transfer = strings ? strings->transfer() : H5P_DEFAULT;
  if (dims.empty()) {
    check_read(H5Dread(dataset, memory, H5S_ALL, H5S_ALL, transfer, out.data()), dataset, "read the values");
    return;
  }
  const array::extents out_first = corner.empty() ? array::extents(out_shape.size(), 0) : corner;
  if (strings && string_blocks_ && string_blocks_->has_fill_text())
    return string_blocks_->read(memory, {first, count}, out_shape, out_first,
                                {reinterpret_cast<char**>(out.data()), out.size() / sizeof(char*)}, *strings);
  const handle file_space(H5Scopy(space), "copy a dataspace");
  check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, to_hsize(first).data(), nullptr, to_hsize(count).data(), nullptr),
        "select a block");
  const handle memory_space(H5Screate_simple(static_cast<int>(out_shape.size()), to_hsize(out_shape).data(), nullptr),
                            "create a dataspace");
  check(H5Sselect_hyperslab(memory_space, H5S_SELECT_SET, to_hsize(out_first).data(), nullptr, to_hsize(count).data(), nullptr),
        "select a block");
  check_read(H5Dread(dataset, memory, memory_space, file_space, transfer, out.data()), dataset, "read the values");
}

stored_chunk source_dataset::find_chunk(const array::extents& first, std::uint64_t size) const {
  stored_chunk chunk;
  const auto location = bytes->chunks().find(dataset, first, chunk.mask);
  if (location) {
    if (location->size != size)
      throw compressors::corrupt_chunk("it holds " + text::pluralize(location->size, "byte") + " instead of " +
                                       std::to_string(size));
    chunk.offset = location->offset;
    return chunk;
  }
  // a pattern that shows whether H5Dread_chunk wrote to the buffer
  constexpr std::string_view untouched = "\xD1\x5C no bytes \xC5\x7A";
  chunk.bytes.resize(static_cast<std::size_t>(size));
  const std::size_t n = std::min(untouched.size(), chunk.bytes.size());
  const auto end = std::as_writable_bytes(std::span(chunk.bytes).last(n));
  std::memcpy(end.data(), untouched.data(), n);
  check(H5Dread_chunk(dataset, H5P_DEFAULT, to_hsize(first).data(), &chunk.mask, chunk.bytes.data()), "read a chunk");
  if (n == untouched.size() && std::memcmp(end.data(), untouched.data(), n) == 0)
    throw compressors::corrupt_chunk("it holds fewer bytes than " + std::to_string(size));
  return chunk;
}

std::vector<stored_place> source_dataset::places_of_chunks(std::size_t max_chunks) const {
  if (layout != H5D_CHUNKED || chunk_in_file.empty() || array::product(chunk_in_file) == 0) return {};
  const array::chunk_grid file_grid{dims, chunk_in_file};
  const std::uint64_t count = file_grid.chunks();
  if (count == 0 || count > max_chunks) return {};
  std::vector<stored_place> places;
  array::extents index(file_grid.rank(), 0);
  do {
    const array::extents first = file_grid.start(index);
    stored_place place;
    place.size = stored_size(first);
    if (place.size > 0) {
      const auto location = bytes->chunks().find(dataset, first, place.mask);
      if (!location || location->size != place.size) return {};
      place.offset = location->offset;
    }
    places.push_back(place);
  } while (file_grid.next(index));
  return places;
}

void source_dataset::for_each_stored_part(const array::box& block, const part_visitor& visit) const {
  if (layout != H5D_CHUNKED || dims.empty() || chunk_in_file.size() != dims.size() || array::product(chunk_in_file) == 0) return;
  const array::chunk_grid file_grid{dims, chunk_in_file};
  array::for_each_index(file_grid.chunks_over(block),
                        [&](const array::extents& index) { visit(array::intersect(file_grid.box_of(index), block)); });
}

void source_dataset::require_whole_chunks(const array::extents& first, const array::extents& count) const {
  if (layout != H5D_CHUNKED || dims.empty() || nothing_stored() || array::product(count) == 0) return;
  if (chunk_in_file.empty() || array::product(chunk_in_file) == 0)
    throw unsupported_dataset(reason_code::damaged, "the chunk shape does not fit the dataspace");
  const array::chunk_grid file_grid{dims, chunk_in_file};
  array::for_each_index(file_grid.chunks_over({first, count}),
                        [&](const array::extents& index) { require_whole_chunk(file_grid.start(index)); });
}

void source_dataset::require_whole_chunk(const array::extents& first) const {
  constexpr std::size_t max_remembered = 1 << 16;
  {
    const std::lock_guard guard(verified_->mutex);
    if (verified_->chunks.contains(first)) return;
  }
  decoded_chunk(first);
  const std::lock_guard guard(verified_->mutex);
  if (verified_->chunks.size() >= max_remembered) verified_->chunks.clear();
  verified_->chunks.insert(first);
}

std::optional<compressors::buffer> source_dataset::decoded_chunk(const array::extents& first) const {
  stored_chunk chunk;
  std::uint64_t stored = 0;
  {
    const lock one_thread;
    const std::uint64_t size = stored_size(first);
    if (size == 0) return {};
    require_plausible_size(size);
    if (size > std::uint64_t{4} << 30) throw compressors::corrupt_chunk("a stored size of " + text::format_bytes(size));
    chunk = find_chunk(first, size);
    stored = size;
  }
  try {
    if (chunk.offset) {
      chunk.bytes.resize(static_cast<std::size_t>(stored));
      bytes->read(*chunk.offset, chunk.bytes);
    }
  } catch (const io::read_error& e) {
    throw failure(e.what());
  }
  bool partial = false;
  for (std::size_t d = 0; d < first.size(); ++d) partial = partial || dims[d] - first[d] < chunk_in_file[d];
  if (filters.partial_unfiltered && partial) chunk.mask = 0xFFFFFFFFU;
  const std::uint64_t plain = array::saturating_mul(array::product(chunk_in_file), element_in_file);
  if (plain > std::uint64_t{4} << 30) throw compressors::corrupt_chunk("a chunk of " + text::format_bytes(plain));
  return undo(filters, chunk.mask, std::move(chunk.bytes), static_cast<std::size_t>(plain), type);
}

// For a block: one stored chunk, or a range of all elements. In C order, even if the block ends before the chunk.
std::optional<compressors::buffer> source_dataset::elements_of(const array::extents& first, const array::extents& count,
                                                               const array::extents& out_shape) const {
  const std::size_t rank = dims.size();
  if (layout == H5D_CHUNKED) {
    if (chunk_in_file.size() != rank || out_shape != chunk_in_file) return {};
    for (std::size_t d = 0; d < rank; ++d) {
      if (first[d] % chunk_in_file[d] != 0 || count[d] != std::min(chunk_in_file[d], dims[d] - first[d])) return {};
    }
    return decoded_chunk(first);
  }
  if (layout != H5D_CONTIGUOUS) return {};
  std::size_t d = 0;
  while (d < rank && count[d] == 1) ++d;
  for (++d; d < rank; ++d) {
    if (count[d] != dims[d] || count[d] != out_shape[d]) return {};
  }
  const lock one_thread;
  const haddr_t address = H5Dget_offset(dataset);
  H5Eclear2(H5E_DEFAULT);
  if (address == HADDR_UNDEF || address > largest_file - stored_bytes) return {};
  compressors::buffer elements(static_cast<std::size_t>(array::product(count) * element_in_file));
  bytes->read(address + array::ravel(first, dims) * element_in_file, elements);
  return elements;
}

bool source_dataset::read_strings(const array::extents& first, const array::extents& count, const array::extents& out_shape,
                                  compressors::buffer& out, vlen_allocator& strings) const {
  const std::uint64_t total = array::product(count);
  if (!heap_ || total == 0) return false;
  heap_strings reader(*heap_);
  try {
    const std::optional<compressors::buffer> elements = elements_of(first, count, out_shape);
    if (!elements) return false;
    const auto size = static_cast<std::size_t>(element_in_file);
    const array::extents zero(count.size(), 0);
    bool is_read = true;
    std::vector<char*> texts;
    array::for_each_run({zero, out_shape}, {zero, out_shape}, {zero, count},
                        [&](std::uint64_t number, std::uint64_t, std::uint64_t n) {
      texts.resize(static_cast<std::size_t>(n));
      is_read = is_read && reader.read(std::span(*elements).subspan(static_cast<std::size_t>(number) * size, texts.size() * size),
                                       texts, strings);
      if (is_read) std::memcpy(out.data() + number * sizeof(char*), texts.data(), texts.size() * sizeof(char*));
    });
    return is_read;
  } catch (const io::read_error& e) {
    throw failure(e.what());
  }
}

// libhdf5 reports where the values are; the first and the last element test that it is right.
std::optional<std::uint64_t> source_dataset::contiguous_address() const {
  if (layout != H5D_CONTIGUOUS || external || !type.as_stored || holds_references(type)) return {};
  const haddr_t address = H5Dget_offset(dataset);
  const std::uint64_t elements = array::product(dims);
  H5Eclear2(H5E_DEFAULT);
  if (address == HADDR_UNDEF || elements == 0 || stored_bytes / element_size < elements || address > largest_file - stored_bytes)
    return {};
  for (const bool last : {false, true}) {
    array::extents index(dims.size(), 0);
    const array::extents one(dims.size(), 1);
    for (std::size_t d = 0; last && d < dims.size(); ++d) index[d] = dims[d] - 1;
    compressors::buffer read(element_size, std::byte{0}), stored(element_size, std::byte{1});
    try {
      read_block(stored_type, element_size, index, one, one, read);
      bytes->read(address + (last ? (elements - 1) * element_size : 0), stored);
    } catch (const failure&) {
      return {};
    } catch (const io::read_error&) {
      return {};
    }
    if (read != stored) return {};
  }
  return address;
}

}  // namespace zarrbits::hdf5
