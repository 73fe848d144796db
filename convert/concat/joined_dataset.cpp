// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/joined_dataset.hpp"

#include "append/stored_values.hpp"
#include "hdf5/other_files.hpp"
#include "hdf5/source_dataset.hpp"
#include "hdf5/virtual_dataset.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstring>
#include <limits>

namespace zarrbits::conversion {

joined_dataset::joined_dataset(hdf5::opened_dataset first) : hdf5::chunk_source(std::move(first)), parts_(*object.joined) {
  if (!hdf5::unsupported_reason(type).empty()) return;
  if (adds_axis()) {
    dims.insert(dims.begin(), 1);
    max_dims.insert(max_dims.begin(), 1);
  }
  dims[parts_.axis] = parts_.length;
  if (max_dims[parts_.axis] != H5S_UNLIMITED) max_dims[parts_.axis] = parts_.length;
  stored_bytes = parts_.stored_bytes;
  if (parts_.before && parts_.before->missing) {
    const auto& [kind, value] = *parts_.before->missing;
    dcpl = hdf5::handle(H5Pcopy(dcpl), "copy properties");
    // libhdf5 converts no integer to an enumeration
    const bool enumeration = type.kind == hdf5::type_class::enumeration && type.size == value.size();
    hdf5::check(H5Pset_fill_value(dcpl, enumeration ? type.memory : kind, value.data()), "set a fill value");
  }
  if (!parts_.type) return;
  stored_type = hdf5::handle(H5Tcopy(parts_.type), "copy a type");
  element_size = H5Tget_size(stored_type);
  type = hdf5::describe_type(stored_type);
  if (!parts_.missing_is_nan || parts_.before) return;
  dcpl = hdf5::handle(H5Pcopy(dcpl), "copy properties");
  const double missing = std::numeric_limits<double>::quiet_NaN();
  hdf5::check(H5Pset_fill_value(dcpl, H5T_NATIVE_DOUBLE, &missing), "set a fill value");
}

std::vector<hsize_t> joined_dataset::chunk_shape() const {
  return layout == H5D_CHUNKED && !parts_.chunk.empty() ? parts_.chunk : hdf5::chunk_source::chunk_shape();
}

std::optional<hdf5::chunk_grid> joined_dataset::grid_of_parts(const hdf5::chunk_grid& regular) const {
  const std::size_t axis = parts_.axis;
  const hsize_t usual = regular.chunk[axis];
  hdf5::chunk_grid made = regular;
  made.axis = axis;
  hsize_t end = 0;
  const auto fill = [&](hsize_t to, hsize_t length) {
    const hsize_t n = to - std::min(to, end);
    made.add_chunks(length, n / length);
    made.add_chunks(n % length, n % length > 0);
    end += n;
  };
  if (parts_.before) {
    for (const auto& [length, count] : parts_.before->chunks_along_axis) fill(end + length * count, length);
    fill(parts_.stored_count(), usual);
  }
  for (const joined_part& p : parts_.list) {
    fill(p.first, usual);
    fill(p.first + p.count, p.stored_alike ? p.chunk_length : usual);
  }
  fill(parts_.length, usual);
  if (!made.is_rectilinear()) return {};
  return made;
}

hdf5::chunks_kept joined_dataset::kept_on(const hdf5::chunk_grid& on) const {
  const std::size_t axis = parts_.axis;
  hdf5::chunks_kept all;
  const hsize_t first = parts_.before ? parts_.before->whole_chunks : 0;
  all.chunks = on.along(axis) - std::min(first, on.along(axis));
  for (const joined_part& p : parts_.list) {
    if (!p.stored_alike || p.count == 0) continue;
    const hsize_t begin = on.chunk_of(axis, p.first);
    if (on.start(axis, begin) != p.first || on.length(axis, begin) != p.chunk_length) continue;
    hsize_t n = p.count / p.chunk_length;
    if (on.length(axis, begin + n - (n > 0)) != p.chunk_length) continue;
    const bool with_tail =
        p.count % p.chunk_length > 0 && p.first + p.count == on.shape[axis] && on.length(axis, begin + n) == p.chunk_length;
    all.kept += n + with_tail;
    all.kept_elements += with_tail ? p.count : n * p.chunk_length;
  }
  return all;
}

bool joined_dataset::is_in_store(const std::vector<hsize_t>& at) const {
  return parts_.before && at[parts_.axis] < parts_.before->whole_chunks;
}

bool joined_dataset::overlaps_stored_part(const std::vector<hsize_t>& at) const {
  return grid.start(parts_.axis, at[parts_.axis]) < parts_.stored_count();
}

std::optional<joined_dataset::chunk_of_part> joined_dataset::part_with(const std::vector<hsize_t>& at) const {
  std::vector<hsize_t> first = grid.start(at);
  const hsize_t begin = first[parts_.axis], end = begin + grid.inside(at)[parts_.axis];
  const std::size_t i = parts_.first_over(begin);
  if (i == parts_.list.size()) return {};
  const joined_part& part = parts_.list[i];
  if (!part.stored_alike || begin < part.first || end > part.first + part.count) return {};
  if (grid.length(parts_.axis, at[parts_.axis]) != part.chunk_length || (begin - part.first) % part.chunk_length != 0) return {};
  first[parts_.axis] = begin - part.first;
  if (adds_axis()) first.erase(first.begin());
  const hdf5::stored_place* known = known_place(part, first);
  return chunk_of_part{{part.file, part.address, std::move(first)}, known};
}

// The chunk that begins at this element of the part's own dataset; null where that is not known.
const hdf5::stored_place* joined_dataset::known_place(const joined_part& part, const std::vector<hsize_t>& first) const {
  if (part.chunks.empty()) return nullptr;
  hdf5::chunk_grid own{dims, grid.chunk};
  own.shape[parts_.axis] = part.count;
  own.chunk[parts_.axis] = part.chunk_length;
  if (adds_axis()) {
    own.shape.erase(own.shape.begin());
    own.chunk.erase(own.chunk.begin());
  }
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < own.rank(); ++d) number = number * own.along(d) + first[d] / own.chunk[d];
  return number < part.chunks.size() ? &part.chunks[static_cast<std::size_t>(number)] : nullptr;
}

bool joined_dataset::has_values(const std::vector<hsize_t>& at) const {
  if (overlaps_stored_part(at)) return true;
  const hsize_t begin = grid.start(at)[parts_.axis];
  const std::size_t i = parts_.first_over(begin);
  return i < parts_.list.size() && parts_.list[i].first < begin + grid.inside(at)[parts_.axis];
}

std::uint64_t joined_dataset::visit_new(std::uint64_t first, std::uint64_t count, const chunk_visitor& visit) const {
  if (!parts_.before) {
    hdf5::for_each_chunk(shards, first, count, visit);
    return 0;
  }
  const hdf5::box_test has_new = [&](const std::vector<hsize_t>& at, const std::vector<hsize_t>& chunks) {
    return at[parts_.axis] + chunks[parts_.axis] > parts_.before->whole_chunks;
  };
  std::uint64_t others = hdf5::chunks_in(shards, first, count);
  hdf5::for_each_wanted_chunk(shards, first, count, has_new, [&](const std::vector<hsize_t>& at) {
    --others;
    return visit(at);
  });
  return others;
}

std::uint64_t joined_dataset::visit_all(std::uint64_t first, std::uint64_t count, const chunk_visitor& visit) const {
  visit_new(first, count, visit);
  return 0;
}

std::uint64_t joined_dataset::visit_stored(std::uint64_t first, std::uint64_t count, const stored_visitor& visit) const {
  return visit_new(first, count, [&](const std::vector<hsize_t>& at) {
    if (const auto one = part_with(at)) {
      const hsize_t size = one->known ? one->known->size : parts_.files->stored_size(one->chunk);
      // an unwritten chunk means the part's fill value, which may differ from that of an existing store
      if (size == 0 && parts_.before) return visit(at, {});
      return size == 0 || visit(at, size);
    }
    return !has_values(at) || visit(at, {});
  });
}

hdf5::stored_chunk joined_dataset::find_chunk(const std::vector<hsize_t>& first, std::uint64_t size) const {
  const auto found = part_with(grid.chunk_of(first));
  if (!found) throw hdf5::failure("a chunk of several datasets is stored in none");
  if (!found->known) return parts_.files->find_chunk(found->chunk, size);
  return {.offset = found->known->offset, .mask = found->known->mask, .file = found->chunk.file};
}

std::shared_ptr<const io::byte_source> joined_dataset::bytes_of(std::size_t number) const {
  return number == hdf5::no_file ? hdf5::chunk_source::bytes_of(number) : parts_.files->bytes(number);
}

namespace {

// Copies a block of `count` elements to `corner` of an array of extent `room`.
void put_block(const compressors::buffer& block, std::size_t size, const std::vector<hsize_t>& count, const std::vector<hsize_t>& room,
               const std::vector<hsize_t>& corner, compressors::buffer& out) {
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

void joined_dataset::read_values(hid_t memory, std::size_t size, const std::vector<hsize_t>& first,
                                 const std::vector<hsize_t>& count, const std::vector<hsize_t>& room, compressors::buffer& out,
                                 hdf5::variable_memory* strings, const std::vector<hsize_t>&) const {
  const std::size_t axis = parts_.axis;
  const hdf5::lock one_thread;
  if (hdf5::product(count) == 0) return;
  const hsize_t end = first[axis] + count[axis];
  if (first[axis] < parts_.stored_count()) {
    std::vector<hsize_t> n = count;
    n[axis] = std::min(end, parts_.stored_count()) - first[axis];
    parts_.before->read_block(memory, size, first, n, room, out, strings);
  }
  for (std::size_t i = parts_.first_over(first[axis]); i < parts_.list.size() && parts_.list[i].first < end; ++i) {
    const joined_part& part = parts_.list[i];
    const hsize_t from = std::max(first[axis], part.first), to = std::min(end, part.first + part.count);
    std::vector<hsize_t> there = first, n = count, corner(first.size(), 0);
    there[axis] = from - part.first;
    n[axis] = to - from;
    corner[axis] = from - first[axis];
    const std::shared_ptr<const hdf5::source_dataset> one = parts_.files->dataset(part.file, part.address);
    if (!one->beside->obstacle.empty())
      throw hdf5::skip_dataset("of \"" + parts_.files->list()[part.file].name + "\", " + one->beside->obstacle);
    std::vector<hsize_t> count_there = n;
    if (adds_axis()) {
      there.erase(there.begin());
      count_there.erase(count_there.begin());
    }
    if (!part.change && adds_axis()) {
      compressors::buffer values(static_cast<std::size_t>(hdf5::product(n)) * size, std::byte{0});
      one->read_block(memory, size, there, count_there, count_there, values, strings);
      put_block(values, size, n, room, corner, out);
      continue;
    }
    if (!part.change) {
      one->read_block(memory, size, there, n, room, out, strings, corner);
      continue;
    }
    const std::size_t before = H5Tget_size(part.change->from()), after = H5Tget_size(part.change->to());
    const std::size_t elements = static_cast<std::size_t>(hdf5::product(n));
    compressors::buffer values(elements * before), changed(elements * std::max(after, size));
    one->read_block(part.change->from(), before, there, count_there, count_there, values);
    try {
      part.change->apply(values.data(), changed.data(), elements);
    } catch (const no_counterpart& e) {
      throw zarrbits::error(
          errc::not_joinable,
          "\"" + object.path + "\" of \"" + parts_.files->list()[part.file].name + "\" cannot be joined: " + e.what(),
          {parts_.files->list()[part.file].name, object.path});
    }
    hdf5::check(H5Tconvert(part.change->to(), memory, elements, changed.data(), nullptr, H5P_DEFAULT), "convert the values");
    changed.resize(elements * size);
    put_block(changed, size, n, room, corner, out);
  }
}

std::unique_ptr<hdf5::chunk_source> open_chunks(hdf5::source_file& file, const hdf5::source_object& object) {
  if (object.joined) return std::make_unique<joined_dataset>(hdf5::opened_dataset(file, object));
  return hdf5::open_dataset(file, object);
}

}  // namespace zarrbits::conversion
