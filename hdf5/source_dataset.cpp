// SPDX-License-Identifier: BSL-1.0
#include "hdf5/source_dataset.hpp"

#include "hdf5/arranged_type.hpp"
#include "hdf5/attributes.hpp"
#include "hdf5/chunk_grid.hpp"
#include "hdf5/chunk_index.hpp"
#include "hdf5/joined_parts.hpp"
#include "hdf5/lent_decoders.hpp"
#include "hdf5/virtual_parts.hpp"
#include "io/files.hpp"
#include "io/s3_objects.hpp"
#include "text/names.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <unistd.h>

namespace zarrbits::conversion {

namespace {

constexpr std::uint64_t largest_file = std::numeric_limits<std::int64_t>::max();

// Size of an element in the file. For variable length, libhdf5 returns the size in memory; the file has a length, an address and
// an index.
std::int64_t size_in_file(hid_t type, std::size_t address) {
  const H5T_class_t c = H5Tget_class(type);
  const auto size = static_cast<std::int64_t>(H5Tget_size(type));
  if (c == H5T_VLEN || (c == H5T_STRING && H5Tis_variable_str(type) > 0)) return static_cast<std::int64_t>(4 + address + 4);
  if (c == H5T_ARRAY) {
    const h5::handle base(H5Tget_super(type), "get the base of an array type");
    const auto each = static_cast<std::int64_t>(H5Tget_size(base));
    return each > 0 ? size / each * size_in_file(base, address) : 0;
  }
  if (c != H5T_COMPOUND) return size;
  std::int64_t all = size;
  const int n = H5Tget_nmembers(type);
  for (int i = 0; i < n; ++i) {
    const h5::handle member(H5Tget_member_type(type, static_cast<unsigned>(i)), "get the type of a member");
    all += size_in_file(member, address) - static_cast<std::int64_t>(H5Tget_size(member));
  }
  return all;
}

}  // namespace

skip_dataset missing_filter(const std::string& names) {
  return skip_dataset("it needs HDF5 filter " + names +
                      ", which is not installed (HDF5_PLUGIN_PATH names the folder of plugins)");
}

std::optional<std::string> reason_to_skip(const std::function<void()>& f) {
  try {
    f();
    return {};
  } catch (const skip_dataset& e) {
    return e.what();
  } catch (const damaged_chunk& e) {
    return e.what();
  } catch (const h5::failure& e) {
    return e.what();
  } catch (const zarrbits::error& e) {
    if (!is_codec_error(e)) throw;
    return e.what();
  } catch (const std::bad_alloc&) {
    return "it needs more memory than is available";
  } catch (const std::length_error&) {
    return "it needs more memory than is available";
  }
}

source_dataset::source_dataset(source_file& from, const source_object& o) : file(from), object(o) {
  const h5::handle opened = file.open(object);
  dataset = h5::handle(H5Dopen2(opened, ".", H5P_DEFAULT));
  if (!dataset) {  // an object id of a dataset is a dataset id
    H5Eclear2(H5E_DEFAULT);
    H5Iinc_ref(opened);
    dataset = h5::handle(opened.get());
  }
  bytes =
      object.place.file == 0
          ? file.bytes()
          : std::make_shared<const file_bytes>(chunk_locator(h5::handle(H5Iget_file_id(dataset), "get the file of a dataset")));
  // libhdf5 may open the sources of a virtual dataset to find its extent
  beside = file.find_external_data(dataset);
  if (beside->endless) throw h5::failure(beside->obstacle);
  stored_type = h5::handle(H5Dget_type(dataset), "get the datatype");
  space = h5::handle(H5Dget_space(dataset), "get the dataspace");
  dcpl = h5::handle(H5Dget_create_plist(dataset), "get the properties");
  element_size = H5Tget_size(stored_type);
  type = describe_type(stored_type);
  arrange_type(type, object.arranged);
  layout = H5Pget_layout(dcpl);
  filters = read_pipeline(dcpl);
  if (layout == H5D_VIRTUAL && beside->chunked) source_filters = read_pipeline(beside->chunked->properties);
  register_decoders(dcpl);
  external = H5Pget_external_count(dcpl) > 0;
  stored_bytes = H5Dget_storage_size(dataset);
  null = H5Sget_simple_extent_type(space) == H5S_NULL;
  if (!null) {
    dims = h5::extent(space);
    max_dims = h5::maximum_extent(space);
  }
  stored_chunk_.resize(layout == H5D_CHUNKED ? dims.size() : 0);
  if (!stored_chunk_.empty() &&
      H5Pget_chunk(dcpl, static_cast<int>(dims.size()), stored_chunk_.data()) != static_cast<int>(dims.size())) {
    stored_chunk_.clear();
  }
  if (!unsupported_reason(type).empty()) return;
  std::size_t address = 8, length = 8;
  const h5::handle creation(H5Fget_create_plist(h5::handle(H5Iget_file_id(dataset), "get the file")), "get the properties");
  H5Pget_sizes(creation, &address, &length);
  element_in_file_ = static_cast<std::uint64_t>(std::max<std::int64_t>(1, size_in_file(stored_type, address)));
  if (type.kind == type_class::text && type.variable && bytes->descriptor() >= 0 && !external && !file.swmr()) {
    hsize_t user_block = 0;
    h5::check(H5Pget_userblock(creation, &user_block), "get the size of the user block");
    const heap_format format{bytes->descriptor(), state_of(bytes->descriptor()).size, user_block, address, length};
    if (format.element_size() == element_in_file_) heap_ = format;
  }
  const bool one_piece = layout == H5D_COMPACT || (layout == H5D_CONTIGUOUS && !external && stored_bytes > 0);
  if (!null && one_piece && stored_bytes / element_in_file_ < product(dims)) {
    throw h5::failure("its values take " + human_bytes(stored_bytes) + " in the file, which is too little for its extent");
  }
  if (joined()) stand_for_all();
  mapped = parts_of_virtual(*this);
  if (chunks_of_sources()) filters = source_filters;
}

void source_dataset::use_grid(chunk_grid chunks, chunk_grid of_shards, bool rechunked) {
  grid = std::move(chunks);
  shards = std::move(of_shards);
  rechunked_ = rechunked || (joined() && joined()->type);
}

const type_tree& source_dataset::leaf() const {
  const type_tree* t = &type;
  while (t->kind == type_class::array) t = &t->element();
  return *t;
}

void source_dataset::read_block(hid_t memory, std::size_t size, const std::vector<hsize_t>& first,
                                const std::vector<hsize_t>& count, const std::vector<hsize_t>& room, buffer& out,
                                variable_memory* strings, const std::vector<hsize_t>& corner) const {
  if (out.size() < product(room) * size) throw skip_dataset("a block that does not fit in memory");
  if (joined()) return read_parts(memory, size, first, count, room, out, strings);
  if (strings && corner.empty() && size == sizeof(char*) && read_strings(first, count, room, out, *strings)) return;
  require_whole_chunks(first, count);
  const h5::lock one_thread;
  const hid_t transfer = strings ? strings->transfer() : H5P_DEFAULT;
  if (dims.empty()) {
    h5::check(H5Dread(dataset, memory, H5S_ALL, H5S_ALL, transfer, out.data()), "read the values");
    return;
  }
  const h5::handle file_space(H5Scopy(space), "copy a dataspace");
  h5::check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, first.data(), nullptr, count.data(), nullptr), "select a block");
  const h5::handle memory_space(H5Screate_simple(static_cast<int>(room.size()), room.data(), nullptr), "create a dataspace");
  const std::vector<hsize_t> zero(room.size(), 0);
  const hsize_t* to = corner.empty() ? zero.data() : corner.data();
  h5::check(H5Sselect_hyperslab(memory_space, H5S_SELECT_SET, to, nullptr, count.data(), nullptr), "select a block");
  h5::check(H5Dread(dataset, memory, memory_space, file_space, transfer, out.data()), "read the values");
}

void source_dataset::count_variable(std::uint64_t read) const {
  constexpr std::uint64_t most_times = 1000;
  const std::uint64_t all = variable_bytes_ += read;
  if (all <= file.largest_expansion()) return;
  const h5::lock one_thread;
  hsize_t size = 0;
  const h5::handle own(H5Iget_file_id(dataset));
  if (H5Fget_filesize(own, &size) >= 0 && all / most_times <= size) return;
  throw skip_dataset("its strings or sequences are more than " + human_bytes(all) +
                     ", more than 1,000 times the size of the file, and more than `memory` allows; set "
                     "`allow_expansion` if you trust the file");
}

source_dataset::stored_chunk source_dataset::find_chunk(const std::vector<hsize_t>& first, std::uint64_t size) const {
  stored_chunk chunk;
  if (in_parts()) {
    const auto found = chunk_elsewhere(grid.chunk_of(first));
    if (!found) throw h5::failure("a chunk of several datasets is not stored in any of them");
    if (const stored_place* known = known_place(*found->first, found->second)) {
      chunk.mask = known->mask;
      chunk.offset = known->offset;
      chunk.file = found->first->file;
      return chunk;
    }
    chunk = other_files().dataset(*found->first)->find_chunk(found->second, size);
    chunk.file = found->first->file;
    return chunk;
  }
  const auto found = bytes->descriptor() < 0 ? std::nullopt : bytes->chunks().find(dataset, first.data(), chunk.mask);
  if (found) {
    if (found->size != size)
      throw damaged_chunk("it holds " + counted(found->size, "byte") + " instead of " + std::to_string(size));
    chunk.offset = found->offset;
    return chunk;
  }
  // a pattern that shows whether H5Dread_chunk wrote to the buffer
  constexpr std::string_view untouched = "\xD1\x5C no bytes \xC5\x7A";
  chunk.bytes.resize(static_cast<std::size_t>(size));
  const std::size_t n = std::min(untouched.size(), chunk.bytes.size());
  const auto end = std::as_writable_bytes(std::span(chunk.bytes).last(n));
  std::memcpy(end.data(), untouched.data(), n);
  h5::check(H5Dread_chunk(dataset, H5P_DEFAULT, first.data(), &chunk.mask, chunk.bytes.data()), "read a chunk");
  if (n == untouched.size() && std::memcmp(end.data(), untouched.data(), n) == 0)
    throw damaged_chunk("it holds fewer bytes than " + std::to_string(size));
  return chunk;
}

void source_dataset::require_sensible(std::uint64_t stored) const {
  constexpr std::uint64_t most_times = 1000;
  const std::uint64_t plain = product(std::vector<hsize_t>{product(stored_chunk_), element_in_file_});
  if (plain <= file.largest_expansion() || plain / most_times <= stored) return;
  throw damaged_chunk(
      human_bytes(stored) + " would become " + human_bytes(plain) +
      ", more than 1,000 times as much, and more than `memory` allows; set `allow_expansion` if you trust the file");
}

void source_dataset::require_whole_chunks(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count) const {
  if (layout != H5D_CHUNKED || dims.empty() || nothing_stored() || product(count) == 0) return;
  if (stored_chunk_.empty() || product(stored_chunk_) == 0) throw skip_dataset("the chunk shape does not fit the dataspace");
  const std::size_t rank = dims.size();
  std::vector<hsize_t> begin(rank), last(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    begin[d] = first[d] / stored_chunk_[d] * stored_chunk_[d];
    last[d] = first[d] + count[d] - 1;
  }
  std::vector<hsize_t> at = begin;
  for (bool more = true; more;) {
    require_whole_chunk(at);
    more = false;
    for (std::size_t d = rank; d-- > 0 && !more;) {
      more = last[d] - at[d] >= stored_chunk_[d];
      at[d] = more ? at[d] + stored_chunk_[d] : begin[d];
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

std::optional<buffer> source_dataset::decoded_chunk(const std::vector<hsize_t>& at) const {
  stored_chunk chunk;
  std::uint64_t stored = 0;
  {
    const h5::lock one_thread;
    const hsize_t size = stored_size(dataset, at);
    if (size == 0) return {};
    require_sensible(size);
    if (size > std::uint64_t{4} << 30) throw damaged_chunk("a stored size of " + human_bytes(size));
    try {
      chunk = find_chunk(at, size);
    } catch (const h5::failure&) {
      if (filters.empty()) return {};  // never written, but in libhdf5's cache: libhdf5 then reports a size
      throw;
    }
    stored = size;
  }
  try {
    if (chunk.offset) {
      chunk.bytes.resize(static_cast<std::size_t>(stored));
      read_range(bytes->descriptor(), *chunk.offset, chunk.bytes);
    }
  } catch (const unreadable_range& e) {
    throw h5::failure(e.what());
  }
  bool partial = false;
  for (std::size_t d = 0; d < at.size(); ++d) partial = partial || dims[d] - at[d] < stored_chunk_[d];
  if (filters.partial_unfiltered && partial) chunk.mask = 0xFFFFFFFFU;
  const std::uint64_t plain = product(std::vector<hsize_t>{product(stored_chunk_), element_in_file_});
  if (plain > std::uint64_t{4} << 30) throw damaged_chunk("a chunk of " + human_bytes(plain));
  return undo(filters, chunk.mask, std::move(chunk.bytes), static_cast<std::size_t>(plain), type);
}

// For a block: one stored chunk, or a range of all elements. In C order, even if the block ends before the chunk.
std::optional<buffer> source_dataset::elements_of(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                                                  const std::vector<hsize_t>& room) const {
  const std::size_t rank = dims.size();
  if (layout == H5D_CHUNKED) {
    if (stored_chunk_.size() != rank || room != stored_chunk_) return {};
    for (std::size_t d = 0; d < rank; ++d) {
      if (first[d] % stored_chunk_[d] != 0 || count[d] != std::min(stored_chunk_[d], dims[d] - first[d])) return {};
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
  const h5::lock one_thread;
  const haddr_t address = H5Dget_offset(dataset);
  H5Eclear2(H5E_DEFAULT);
  if (address == HADDR_UNDEF || address > largest_file - stored_bytes) return {};
  buffer elements(static_cast<std::size_t>(product(count) * element_in_file_));
  read_range(bytes->descriptor(), address + before * element_in_file_, elements);
  return elements;
}

bool source_dataset::read_strings(const std::vector<hsize_t>& first, const std::vector<hsize_t>& count,
                                  const std::vector<hsize_t>& room, buffer& out, variable_memory& strings) const {
  const std::uint64_t all = product(count);
  if (!heap_ || all == 0) return false;
  heap_strings reader(*heap_);
  try {
    const std::optional<buffer> elements = elements_of(first, count, room);
    if (!elements) return false;
    const bool chunk = layout == H5D_CHUNKED;
    const std::size_t row = static_cast<std::size_t>(chunk ? count.back() : all),
                      size = static_cast<std::size_t>(element_in_file_);
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
  } catch (const unreadable_range& e) {
    throw h5::failure(e.what());
  }
}

// libhdf5 reports where the values are; the first and the last element test that it is right.
std::optional<std::uint64_t> source_dataset::contiguous_address(where place) const {
  if (layout != H5D_CONTIGUOUS || joined() || external || !type.as_stored || holds_references(type)) return {};
  const auto remote = object_in_s3(no_file);
  if (remote ? place != where::also_in_s3 : bytes->descriptor() < 0) return {};
  s3_objects in_s3(file.options().endpoint);
  const auto read_there = [&](std::uint64_t offset, std::span<std::byte> to) {
    if (remote) return in_s3.read(remote->first, offset, to);
    return ::pread(bytes->descriptor(), to.data(), to.size(), static_cast<off_t>(offset)) == static_cast<ssize_t>(to.size());
  };
  const haddr_t address = H5Dget_offset(dataset);
  const std::uint64_t elements = product(dims);
  H5Eclear2(H5E_DEFAULT);
  if (address == HADDR_UNDEF || elements == 0 || stored_bytes / element_size < elements || address > largest_file - stored_bytes)
    return {};
  for (const bool last : {false, true}) {
    std::vector<hsize_t> at(dims.size(), 0);
    const std::vector<hsize_t> one(dims.size(), 1);
    for (std::size_t d = 0; last && d < dims.size(); ++d) at[d] = dims[d] - 1;
    buffer read(element_size, std::byte{0}), there(element_size, std::byte{1});
    try {
      read_block(stored_type, element_size, at, one, one, read);
    } catch (const h5::failure&) {
      return {};
    }
    const std::uint64_t offset = address + (last ? (elements - 1) * element_size : 0);
    if (!read_there(offset, there) || read != there) return {};
  }
  return address;
}

bool source_dataset::chunk_loses(const std::vector<hsize_t>& at) const {
  const h5::lock one_thread;
  const std::size_t size = element_size;
  buffer raw(static_cast<std::size_t>(grid.chunk_elements()) * size, std::byte{0});
  try {
    read_block(stored_type, size, grid.start(at), grid.inside(at), grid.chunk, raw);
  } catch (const h5::failure&) {
    return true;
  }
  const h5::handle base = [&] {
    h5::handle t(H5Tcopy(stored_type));
    while (H5Tget_class(t) == H5T_ARRAY) t = h5::handle(H5Tget_super(t));
    return t;
  }();
  return conversion_loses(base, leaf().memory, raw, raw.size() / H5Tget_size(base));
}

bool source_dataset::nothing_stored() const {
  if (joined()) return stored_bytes == 0 && !joined()->before;
  if (layout == H5D_VIRTUAL)
    return std::none_of(beside->sources.begin(), beside->sources.end(), [](const virtual_source& s) { return s.found; });
  return (layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED) && !external && stored_bytes == 0;
}

}  // namespace zarrbits::conversion
