// SPDX-License-Identifier: BSL-1.0
//
// The parts of source_dataset for an object that represents several datasets: those of joined files, or the sources of a virtual
// dataset. Also where a dataset in S3 has its chunks.
//
#include "hdf5/chunk_index.hpp"
#include "hdf5/joined_parts.hpp"
#include "hdf5/source_dataset.hpp"
#include "hdf5/virtual_parts.hpp"
#include "io/s3_access.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

namespace zarrbits::conversion {

// Called after all of the first file's dataset was read.
void source_dataset::stand_for_all() {
  const joined_parts& parts = *joined();
  if (!parts.added.empty()) {
    dims.insert(dims.begin(), 1);
    max_dims.insert(max_dims.begin(), 1);
  }
  dims[parts.axis] = parts.length;
  if (max_dims[parts.axis] != H5S_UNLIMITED) max_dims[parts.axis] = parts.length;
  stored_bytes = parts.stored_bytes;
  if (parts.before && parts.before->missing) {
    const auto& [kind, value] = *parts.before->missing;
    dcpl = h5::handle(H5Pcopy(dcpl), "copy properties");
    // libhdf5 converts no integer to an enumeration
    const bool enumeration = type.kind == type_class::enumeration && type.size == value.size();
    h5::check(H5Pset_fill_value(dcpl, enumeration ? type.memory : kind, value.data()), "set a fill value");
  }
  if (!parts.type) return;
  stored_type = h5::handle(H5Tcopy(parts.type), "copy a type");
  element_size = H5Tget_size(stored_type);
  type = describe_type(stored_type);
  if (!parts.missing_is_nan || parts.before) return;
  dcpl = h5::handle(H5Pcopy(dcpl), "copy properties");
  const double missing = std::numeric_limits<double>::quiet_NaN();
  h5::check(H5Pset_fill_value(dcpl, H5T_NATIVE_DOUBLE, &missing), "set a fill value");
}

bool source_dataset::chunks_of_sources() const { return mapped && !mapped->chunk().empty(); }

const joined_files& source_dataset::other_files() const { return joined() ? *joined()->files : mapped->files(); }

std::shared_ptr<const raw_file> source_dataset::raw(std::size_t number) const { return other_files().raw(number); }

std::optional<std::pair<std::string, file_state>> source_dataset::object_in_s3(std::size_t number) const {
  if (number != no_file) {
    const joined_files::entry& one = other_files().list()[number];
    return is_s3(one.name) ? std::optional(std::pair{one.name, one.state}) : std::nullopt;
  }
  if (!is_s3(file.path()) || object.place.file > 0) return {};
  return std::pair{file.path(), file.state()};
}

std::optional<source_dataset::stored_chunk> source_dataset::find_in_s3(const std::vector<hsize_t>& first,
                                                                       std::uint64_t size) const {
  if (in_parts()) {
    const auto found = chunk_elsewhere(grid.chunk_of(first));
    if (!found) return {};
    auto chunk = other_files().dataset(*found->first)->find_in_s3(found->second, size);
    if (chunk) chunk->file = found->first->file;
    return chunk;
  }
  const auto remote = object_in_s3(no_file);
  if (!remote) return {};
  stored_chunk chunk;
  const auto found = bytes->chunks().find(dataset, first.data(), chunk.mask);
  const std::uint64_t all = remote->second.size;
  if (!found || found->size != size || size > all || found->offset > all - size) return {};
  chunk.offset = found->offset;
  return chunk;
}

bool source_dataset::reads_chunks_at_once() const { return joined() ? joined()->files->any_in_s3() : bytes->descriptor() < 0; }

void source_dataset::require_unchanged() const {
  if (chunks_of_sources()) mapped->files().require_unchanged();
}

bool source_dataset::is_in_store(const std::vector<hsize_t>& at) const {
  const joined_parts* parts = joined();
  return parts && (at[parts->axis] + 1) * grid.chunk[parts->axis] <= parts->stored_count();
}

bool source_dataset::overlaps_stored_part(const std::vector<hsize_t>& at) const {
  const joined_parts* parts = joined();
  return parts && at[parts->axis] * grid.chunk[parts->axis] < parts->stored_count();
}

std::optional<std::pair<const joined_part*, std::vector<hsize_t>>> source_dataset::chunk_elsewhere(
    const std::vector<hsize_t>& at) const {
  std::vector<hsize_t> first = grid.start(at);
  if (!joined()) return mapped->find(first, grid.inside(at));
  const joined_parts& all = *joined();
  const hsize_t begin = first[all.axis], end = begin + grid.inside(at)[all.axis];
  const std::size_t i = all.first_over(begin);
  if (i == all.list.size()) return {};
  const joined_part& part = all.list[i];
  if (!part.stored_alike || begin < part.first || end > part.first + part.count) return {};
  if ((begin - part.first) % grid.chunk[all.axis] != 0) return {};
  first[all.axis] = begin - part.first;
  if (!all.added.empty()) first.erase(first.begin());
  return std::pair{&part, std::move(first)};
}

// The chunk that begins at this element of the part's own dataset; null where that is not known.
const stored_place* source_dataset::known_place(const joined_part& part, const std::vector<hsize_t>& first) const {
  if (part.chunks.empty()) return nullptr;
  const joined_parts& all = *joined();
  chunk_grid own{dims, grid.chunk};
  own.shape[all.axis] = part.count;
  if (!all.added.empty()) {
    own.shape.erase(own.shape.begin());
    own.chunk.erase(own.chunk.begin());
  }
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < own.rank(); ++d) number = number * own.along(d) + first[d] / own.chunk[d];
  return number < part.chunks.size() ? &part.chunks[static_cast<std::size_t>(number)] : nullptr;
}

std::vector<stored_place> source_dataset::places_of_chunks(std::size_t most) const {
  if (layout != H5D_CHUNKED || bytes->descriptor() < 0 || stored_chunk_.empty() || product(stored_chunk_) == 0) return {};
  const chunk_grid own{dims, stored_chunk_};
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

bool source_dataset::is_stored(const std::vector<hsize_t>& at) const {
  const std::vector<hsize_t> first = grid.start(at), count = grid.inside(at);
  if (!joined()) return mapped->meets(first, count);
  const joined_parts& all = *joined();
  const std::size_t i = all.first_over(first[all.axis]);
  if (overlaps_stored_part(at)) return true;
  return i < all.list.size() && all.list[i].first < first[all.axis] + count[all.axis];
}

std::uint64_t source_dataset::for_each_chunk_here(
    std::uint64_t first, std::uint64_t count,
    const std::function<bool(const std::vector<hsize_t>& at, std::optional<hsize_t> size)>& visit) const {
  if (!in_parts()) {
    for_each_stored_chunk(dataset, grid, shards, first, count,
                          [&](const std::vector<hsize_t>& at, hsize_t size) { return visit(at, size); });
    return 0;
  }
  std::uint64_t in_store = 0;
  const auto visit_one = [&](const std::vector<hsize_t>& at) {
    if (is_in_store(at)) return ++in_store > 0;
    if (const auto one = chunk_elsewhere(at)) {
      const stored_place* known = joined() ? known_place(*one->first, one->second) : nullptr;
      const hsize_t size = known ? known->size : stored_size(other_files().dataset(*one->first)->dataset, one->second);
      // an unwritten chunk means the part's fill value, which may differ from that of an existing store
      if (size == 0 && joined() && joined()->before) return visit(at, {});
      return size == 0 || visit(at, size);
    }
    return !is_stored(at) || visit(at, {});
  };
  if (joined()) for_each_chunk(shards, first, count, visit_one);
  else for_each_wanted_chunk(shards, first, count, boxes_with_values(), visit_one);
  return in_store;
}

box_test source_dataset::boxes_with_values() const {
  return [this](const std::vector<hsize_t>& first, std::vector<hsize_t> chunks) {
    const std::vector<hsize_t> element = grid.start(first);
    for (std::size_t d = 0; d < chunks.size(); ++d) chunks[d] = std::min(chunks[d] * grid.chunk[d], grid.shape[d] - element[d]);
    return mapped->meets(element, chunks);
  };
}

namespace {

// Copies a block of `count` elements to `corner` of an array of extent `room`.
void put_block(const buffer& block, std::size_t size, const std::vector<hsize_t>& count, const std::vector<hsize_t>& room,
               const std::vector<hsize_t>& corner, buffer& out) {
  const std::size_t rank = count.size();
  const std::size_t row = static_cast<std::size_t>(count[rank - 1]) * size;
  std::vector<hsize_t> at(rank, 0);
  for (std::size_t begin = 0; begin < block.size(); begin += row) {
    std::uint64_t element = 0;
    for (std::size_t d = 0; d < rank; ++d) element = element * room[d] + corner[d] + at[d];
    std::memcpy(out.data() + element * size, block.data() + begin, row);
    for (std::size_t d = rank - 1; d-- > 0 && ++at[d] == count[d];) at[d] = 0;
  }
}

}  // namespace

void source_dataset::read_parts(hid_t memory, std::size_t size, const std::vector<hsize_t>& first,
                                const std::vector<hsize_t>& count, const std::vector<hsize_t>& room, buffer& out,
                                variable_memory* strings) const {
  const joined_parts& parts = *joined();
  const std::size_t axis = parts.axis;
  const h5::lock one_thread;
  if (product(count) == 0) return;
  const hsize_t end = first[axis] + count[axis];
  if (first[axis] < parts.stored_count()) {
    std::vector<hsize_t> n = count;
    n[axis] = std::min(end, parts.stored_count()) - first[axis];
    parts.before->read_block(memory, size, first, n, room, out, strings);
  }
  for (std::size_t i = parts.first_over(first[axis]); i < parts.list.size() && parts.list[i].first < end; ++i) {
    const joined_part& part = parts.list[i];
    const hsize_t from = std::max(first[axis], part.first), to = std::min(end, part.first + part.count);
    std::vector<hsize_t> there = first, n = count, corner(first.size(), 0);
    there[axis] = from - part.first;
    n[axis] = to - from;
    corner[axis] = from - first[axis];
    const std::shared_ptr<const source_dataset> one = parts.files->dataset(part);
    std::vector<hsize_t> count_there = n;
    if (!parts.added.empty()) {
      there.erase(there.begin());
      count_there.erase(count_there.begin());
    }
    if (!part.change && !parts.added.empty()) {
      buffer values(static_cast<std::size_t>(product(n)) * size, std::byte{0});
      one->read_block(memory, size, there, count_there, count_there, values, strings);
      put_block(values, size, n, room, corner, out);
      continue;
    }
    if (!part.change) {
      one->read_block(memory, size, there, n, room, out, strings, corner);
      continue;
    }
    const std::size_t before = H5Tget_size(part.change->from()), after = H5Tget_size(part.change->to());
    const std::size_t elements = static_cast<std::size_t>(product(n));
    buffer values(elements * before), changed(elements * std::max(after, size));
    one->read_block(part.change->from(), before, there, count_there, count_there, values);
    try {
      part.change->apply(values.data(), changed.data(), elements);
    } catch (const no_counterpart& e) {
      throw zarrbits::error(
          errc::not_joinable,
          "\"" + object.path + "\" of \"" + parts.files->list()[part.file].name + "\" cannot be joined: " + e.what(),
          {parts.files->list()[part.file].name, object.path});
    }
    h5::check(H5Tconvert(part.change->to(), memory, elements, changed.data(), nullptr, H5P_DEFAULT), "convert the values");
    changed.resize(elements * size);
    put_block(changed, size, n, room, corner, out);
  }
}

}  // namespace zarrbits::conversion
