// SPDX-License-Identifier: BSL-1.0
#include "hdf5/source_dataset.hpp"

#include "hdf5/chunk_index.hpp"
#include "hdf5/other_files.hpp"
#include "hdf5/source_files.hpp"
#include "io/files.hpp"
#include "text/words.hpp"

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
  if (type.kind != type_class::text || !type.variable || external || file.swmr()) return;
  std::size_t address = 8, length = 8;
  hsize_t user_block = 0;
  const handle creation(H5Fget_create_plist(handle(H5Iget_file_id(dataset), "tell the file")), "tell the properties");
  H5Pget_sizes(creation, &address, &length);
  check(H5Pget_userblock(creation, &user_block), "tell the size of the user block");
  const heap_format format{bytes->source().get(), bytes->state().size, user_block, address, length};
  if (format.element_size() == element_in_file) heap_ = format;
}

std::uint64_t source_dataset::most_stored() const {
  if (!keeps_chunks()) return chunk_source::most_stored();
  hsize_t stored = 0;
  const std::uint64_t all = grid.chunks();
  const handle extent(H5Dget_space(dataset), "tell the dataspace");
  return H5Dget_num_chunks(dataset, extent, &stored) < 0 ? all : std::min<std::uint64_t>(all, stored);
}

std::uint64_t source_dataset::visit_stored(std::uint64_t first, std::uint64_t count, const stored_visitor& visit) const {
  for_each_stored_chunk(dataset, grid, shards, first, count,
                        [&](const std::vector<hsize_t>& at, hsize_t size) { return visit(at, size); });
  return 0;
}

void source_dataset::read_values(hid_t memory, std::size_t size, const std::vector<hsize_t>& first,
                                 const std::vector<hsize_t>& count, const std::vector<hsize_t>& room, compressors::buffer& out,
                                 variable_memory* strings, const std::vector<hsize_t>& corner) const {
  if (!beside->obstacle.empty()) throw skip_dataset(beside->obstacle);
  if (strings && corner.empty() && size == sizeof(char*) && read_strings(first, count, room, out, *strings)) return;
  require_whole_chunks(first, count);
  const lock one_thread;
  const hid_t transfer = strings ? strings->transfer() : H5P_DEFAULT;
  if (dims.empty()) {
    check(H5Dread(dataset, memory, H5S_ALL, H5S_ALL, transfer, out.data()), "read the values");
    return;
  }
  const handle file_space(H5Scopy(space), "copy a dataspace");
  check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr), "select a block");
  const handle memory_space(H5Screate_simple(static_cast<int>(room.size()), room.data(), nullptr), "create a dataspace");
  const std::vector<hsize_t> zero(room.size(), 0);
  const hsize_t* to = corner.empty() ? zero.data() : corner.data();
  check(H5Sselect_hyperslab(memory_space, H5S_SELECT_SET, to, nullptr, count.data(), nullptr), "select a block");
  check(H5Dread(dataset, memory, memory_space, file_space, transfer, out.data()), "read the values");
}

stored_chunk source_dataset::find_chunk(const std::vector<hsize_t>& first, std::uint64_t size) const {
  stored_chunk chunk;
  const auto found = bytes->chunks().find(dataset, first.data(), chunk.mask);
  if (found) {
    if (found->size != size)
      throw compressors::damaged_chunk("it holds " + text::counted(found->size, "byte") + " instead of " + std::to_string(size));
    chunk.offset = found->offset;
    return chunk;
  }
  // a pattern that shows whether H5Dread_chunk wrote to the buffer
  constexpr std::string_view untouched = "\xD1\x5C no bytes \xC5\x7A";
  chunk.bytes.resize(static_cast<std::size_t>(size));
  const std::size_t n = std::min(untouched.size(), chunk.bytes.size());
  const auto end = std::as_writable_bytes(std::span(chunk.bytes).last(n));
  std::memcpy(end.data(), untouched.data(), n);
  check(H5Dread_chunk(dataset, H5P_DEFAULT, first.data(), &chunk.mask, chunk.bytes.data()), "read a chunk");
  if (n == untouched.size() && std::memcmp(end.data(), untouched.data(), n) == 0)
    throw compressors::damaged_chunk("it holds fewer bytes than " + std::to_string(size));
  return chunk;
}

std::vector<stored_place> source_dataset::places_of_chunks(std::size_t most) const {
  if (layout != H5D_CHUNKED || chunk_in_file.empty() || product(chunk_in_file) == 0) return {};
  const chunk_grid own{dims, chunk_in_file};
  const std::uint64_t count = own.chunks();
  if (count == 0 || count > most) return {};
  std::vector<stored_place> places;
  std::vector<hsize_t> at(own.rank(), 0);
  do {
    const std::vector<hsize_t> first = own.start(at);
    stored_place place;
    place.size = stored_size(dataset, first);
    if (place.size > 0) {
      const auto found = bytes->chunks().find(dataset, first.data(), place.mask);
      if (!found || found->size != place.size) return {};
      place.offset = found->offset;
    }
    places.push_back(place);
  } while (own.next(at));
  return places;
}

void source_dataset::require_whole_chunks(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count) const {
  if (layout != H5D_CHUNKED || dims.empty() || nothing_stored() || product(count) == 0) return;
  if (chunk_in_file.empty() || product(chunk_in_file) == 0) throw skip_dataset("the chunk shape does not fit the dataspace");
  const std::size_t rank = dims.size();
  std::vector<hsize_t> begin(rank), last(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    begin[d] = first[d] / chunk_in_file[d] * chunk_in_file[d];
    last[d] = first[d] + count[d] - 1;
  }
  std::vector<hsize_t> at = begin;
  for (bool more = true; more;) {
    require_whole_chunk(at);
    more = false;
    for (std::size_t d = rank; d-- > 0 && !more;) {
      more = last[d] - at[d] >= chunk_in_file[d];
      at[d] = more ? at[d] + chunk_in_file[d] : begin[d];
    }
  }
}

void source_dataset::require_whole_chunk(const std::vector<hsize_t>& at) const {
  constexpr std::size_t most_remembered = 1 << 16;
  {
    const std::lock_guard held(seen_->mutex);
    if (seen_->whole.contains(at)) return;
  }
  decoded_chunk(at);
  const std::lock_guard held(seen_->mutex);
  if (seen_->whole.size() >= most_remembered) seen_->whole.clear();
  seen_->whole.insert(at);
}

std::optional<compressors::buffer> source_dataset::decoded_chunk(const std::vector<hsize_t>& at) const {
  stored_chunk chunk;
  std::uint64_t stored = 0;
  {
    const lock one_thread;
    const hsize_t size = stored_size(dataset, at);
    if (size == 0) return {};
    require_sensible(size);
    if (size > std::uint64_t{4} << 30) throw compressors::damaged_chunk("a stored size of " + text::human_bytes(size));
    try {
      chunk = find_chunk(at, size);
    } catch (const failure&) {
      if (filters.empty()) return {};  // never written, but in libhdf5's cache: libhdf5 then reports a size
      throw;
    }
    stored = size;
  }
  try {
    if (chunk.offset) {
      chunk.bytes.resize(static_cast<std::size_t>(stored));
      bytes->read(*chunk.offset, chunk.bytes);
    }
  } catch (const io::unreadable_range& e) {
    throw failure(e.what());
  }
  bool partial = false;
  for (std::size_t d = 0; d < at.size(); ++d) partial = partial || dims[d] - at[d] < chunk_in_file[d];
  if (filters.partial_unfiltered && partial) chunk.mask = 0xFFFFFFFFU;
  const std::uint64_t plain = product(std::vector<hsize_t>{product(chunk_in_file), element_in_file});
  if (plain > std::uint64_t{4} << 30) throw compressors::damaged_chunk("a chunk of " + text::human_bytes(plain));
  return undo(filters, chunk.mask, std::move(chunk.bytes), static_cast<std::size_t>(plain), type);
}

// For a block: one stored chunk, or a range of all elements. In C order, even if the block ends before the chunk.
std::optional<compressors::buffer> source_dataset::elements_of(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                                                  const std::vector<hsize_t>& room) const {
  const std::size_t rank = dims.size();
  if (layout == H5D_CHUNKED) {
    if (chunk_in_file.size() != rank || room != chunk_in_file) return {};
    for (std::size_t d = 0; d < rank; ++d) {
      if (first[d] % chunk_in_file[d] != 0 || count[d] != std::min(chunk_in_file[d], dims[d] - first[d])) return {};
    }
    return decoded_chunk(first);
  }
  if (layout != H5D_CONTIGUOUS) return {};
  std::size_t d = 0;
  while (d < rank && count[d] == 1) ++d;
  for (++d; d < rank; ++d) {
    if (count[d] != dims[d] || count[d] != room[d]) return {};
  }
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < rank; ++i) before = before * dims[i] + first[i];
  const lock one_thread;
  const haddr_t address = H5Dget_offset(dataset);
  H5Eclear2(H5E_DEFAULT);
  if (address == HADDR_UNDEF || address > largest_file - stored_bytes) return {};
  compressors::buffer elements(static_cast<std::size_t>(product(count) * element_in_file));
  bytes->read(address + before * element_in_file, elements);
  return elements;
}

bool source_dataset::read_strings(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                                  const std::vector<hsize_t>& room, compressors::buffer& out, variable_memory& strings) const {
  const std::uint64_t all = product(count);
  if (!heap_ || all == 0) return false;
  heap_strings reader(*heap_);
  try {
    const std::optional<compressors::buffer> elements = elements_of(first, count, room);
    if (!elements) return false;
    const bool chunk = layout == H5D_CHUNKED;
    const std::size_t row = static_cast<std::size_t>(chunk ? count.back() : all),
                      size = static_cast<std::size_t>(element_in_file);
    std::vector<hsize_t> at(count.size(), 0);
    std::vector<char*> texts(row);
    for (std::uint64_t done = 0; done < all; done += row) {
      std::uint64_t number = 0;
      for (std::size_t d = 0; d < at.size(); ++d) number = number * room[d] + at[d];
      if (!reader.read(std::span(*elements).subspan(static_cast<std::size_t>(number) * size, row * size), texts, strings))
        return false;
      std::memcpy(out.data() + number * sizeof(char*), texts.data(), row * sizeof(char*));
      if (at.empty()) break;
      for (std::size_t d = at.size() - 1; d-- > 0 && ++at[d] == count[d];) at[d] = 0;
    }
    return true;
  } catch (const io::unreadable_range& e) {
    throw failure(e.what());
  }
}

// libhdf5 reports where the values are; the first and the last element test that it is right.
std::optional<std::uint64_t> source_dataset::contiguous_address() const {
  if (layout != H5D_CONTIGUOUS || external || !type.as_stored || holds_references(type)) return {};
  const haddr_t address = H5Dget_offset(dataset);
  const std::uint64_t elements = product(dims);
  H5Eclear2(H5E_DEFAULT);
  if (address == HADDR_UNDEF || elements == 0 || stored_bytes / element_size < elements || address > largest_file - stored_bytes)
    return {};
  for (const bool last : {false, true}) {
    std::vector<hsize_t> at(dims.size(), 0);
    const std::vector<hsize_t> one(dims.size(), 1);
    for (std::size_t d = 0; last && d < dims.size(); ++d) at[d] = dims[d] - 1;
    compressors::buffer read(element_size, std::byte{0}), there(element_size, std::byte{1});
    try {
      read_block(stored_type, element_size, at, one, one, read);
      bytes->read(address + (last ? (elements - 1) * element_size : 0), there);
    } catch (const failure&) {
      return {};
    } catch (const io::unreadable_range&) {
      return {};
    }
    if (read != there) return {};
  }
  return address;
}

}  // namespace zarrbits::hdf5
