// SPDX-License-Identifier: BSL-1.0
#include "convert/concat/joined_dataset.hpp"

#include "append/existing_array.hpp"
#include "hdf5/external_files.hpp"
#include "hdf5/source_dataset.hpp"
#include "hdf5/virtual_dataset.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
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
  if (parts_.existing && parts_.existing->missing) {
    const auto& [kind, value] = *parts_.existing->missing;
    dcpl = hdf5::handle(H5Pcopy(dcpl), "copy properties");
    // libhdf5 converts no integer to an enumeration
    const bool enumeration = type.kind == hdf5::type_class::enumeration && type.size == value.size();
    hdf5::check(H5Pset_fill_value(dcpl, enumeration ? type.memory : kind, value.data()), "set a fill value");
  }
  if (!parts_.type) return;
  stored_type = hdf5::handle(H5Tcopy(parts_.type), "copy a type");
  element_size = H5Tget_size(stored_type);
  type = hdf5::describe_type(stored_type);
  if (!parts_.missing_is_nan || parts_.existing) return;
  dcpl = hdf5::handle(H5Pcopy(dcpl), "copy properties");
  const double missing = std::numeric_limits<double>::quiet_NaN();
  hdf5::check(H5Pset_fill_value(dcpl, H5T_NATIVE_DOUBLE, &missing), "set a fill value");
}

array::extents joined_dataset::chunk_shape() const {
  return layout == H5D_CHUNKED && !parts_.chunk.empty() ? parts_.chunk : hdf5::chunk_source::chunk_shape();
}

std::optional<array::chunk_grid> joined_dataset::grid_of_parts(const array::chunk_grid& regular) const {
  const std::size_t axis = parts_.axis;
  const std::uint64_t usual = regular.chunk[axis];
  array::chunk_grid result = regular;
  std::uint64_t end = 0;
  const auto fill = [&](std::uint64_t limit, std::uint64_t length) {
    const std::uint64_t n = limit - std::min(limit, end);
    result.add_chunks(axis, length, n / length);
    result.add_chunks(axis, n % length, n % length > 0);
    end += n;
  };
  if (parts_.existing) {
    for (const auto& [length, count] : parts_.existing->chunks_along_axis) fill(end + length * count, length);
    fill(parts_.stored_count(), usual);
  }
  for (const joined_part& p : parts_.list) {
    fill(p.first, usual);
    fill(p.first + p.count, p.stored_alike ? p.chunk_length : usual);
  }
  fill(parts_.length, usual);
  if (!result.is_rectilinear()) return {};
  return result;
}

hdf5::reused_chunks joined_dataset::reuse_on(const array::chunk_grid& target_grid) const {
  const std::size_t axis = parts_.axis;
  hdf5::reused_chunks result;
  const std::uint64_t first = parts_.existing ? parts_.existing->whole_chunks : 0;
  result.chunks = target_grid.chunks_along(axis) - std::min(first, target_grid.chunks_along(axis));
  if (result.chunks == 0) return {};
  result.elements = target_grid.shape[axis] - target_grid.start(axis, first);
  for (const joined_part& p : parts_.list) {
    if (!p.stored_alike || p.count == 0) continue;
    const std::uint64_t begin = target_grid.chunk_of(axis, p.first);
    if (target_grid.start(axis, begin) != p.first || target_grid.length(axis, begin) != p.chunk_length) continue;
    std::uint64_t n = p.count / p.chunk_length;
    if (target_grid.length(axis, begin + n - (n > 0)) != p.chunk_length) continue;
    const bool with_tail = p.count % p.chunk_length > 0 && p.first + p.count == target_grid.shape[axis] &&
                           target_grid.length(axis, begin + n) == p.chunk_length;
    result.reused += n + with_tail;
    result.reused_elements += with_tail ? p.count : n * p.chunk_length;
  }
  for (std::size_t d = 0; d < target_grid.rank(); ++d) {
    if (d == axis) continue;
    for (std::uint64_t* chunks : {&result.chunks, &result.reused})
      *chunks = array::saturating_mul(*chunks, target_grid.chunks_along(d));
    for (std::uint64_t* elements : {&result.elements, &result.reused_elements})
      *elements = array::saturating_mul(*elements, target_grid.shape[d]);
  }
  return result;
}

bool joined_dataset::is_in_store(const array::extents& coordinates) const {
  return parts_.existing && coordinates[parts_.axis] < parts_.existing->whole_chunks;
}

bool joined_dataset::overlaps_stored_part(const array::extents& coordinates) const {
  return grid.start(parts_.axis, coordinates[parts_.axis]) < parts_.stored_count();
}

std::optional<joined_dataset::chunk_of_part> joined_dataset::part_with(const array::extents& coordinates) const {
  array::extents first = grid.start(coordinates);
  const std::uint64_t begin = first[parts_.axis], end = begin + grid.inside(coordinates)[parts_.axis];
  const std::size_t i = parts_.first_over(begin);
  if (i == parts_.list.size()) return {};
  const joined_part& part = parts_.list[i];
  if (!part.stored_alike || begin < part.first || end > part.first + part.count) return {};
  if (grid.length(parts_.axis, coordinates[parts_.axis]) != part.chunk_length || (begin - part.first) % part.chunk_length != 0)
    return {};
  first[parts_.axis] = begin - part.first;
  if (adds_axis()) first.erase(first.begin());
  const hdf5::stored_place* location = find_location(part, first);
  return chunk_of_part{{part.file, part.address, std::move(first)}, location};
}

// The chunk that begins at this element of the part's own dataset; null if unknown.
const hdf5::stored_place* joined_dataset::find_location(const joined_part& part, const array::extents& first) const {
  if (part.chunks.empty()) return nullptr;
  array::chunk_grid part_grid{dims, grid.chunk};
  part_grid.shape[parts_.axis] = part.count;
  part_grid.chunk[parts_.axis] = part.chunk_length;
  if (adds_axis()) {
    part_grid.shape.erase(part_grid.shape.begin());
    part_grid.chunk.erase(part_grid.chunk.begin());
  }
  const std::uint64_t number = array::ravel(part_grid.chunk_of(first), part_grid.counts());
  return number < part.chunks.size() ? &part.chunks[static_cast<std::size_t>(number)] : nullptr;
}

bool joined_dataset::has_values(const array::extents& coordinates) const {
  if (overlaps_stored_part(coordinates)) return true;
  const std::uint64_t begin = grid.start(coordinates)[parts_.axis];
  const std::size_t i = parts_.first_over(begin);
  return i < parts_.list.size() && parts_.list[i].first < begin + grid.inside(coordinates)[parts_.axis];
}

std::uint64_t joined_dataset::visit_new(std::uint64_t first, std::uint64_t count, const chunk_visitor& visit) const {
  if (!parts_.existing) {
    array::for_each_chunk(shards, first, count, visit);
    return 0;
  }
  const array::box_test has_new = [&](const array::extents& coordinates, const array::extents& chunks) {
    return coordinates[parts_.axis] + chunks[parts_.axis] > parts_.existing->whole_chunks;
  };
  std::uint64_t skipped = array::chunks_in(shards, first, count);
  array::for_each_matching_chunk(shards, first, count, has_new, [&](const array::extents& coordinates) {
    --skipped;
    return visit(coordinates);
  });
  return skipped;
}

std::uint64_t joined_dataset::visit_all(std::uint64_t first, std::uint64_t count, const chunk_visitor& visit) const {
  visit_new(first, count, visit);
  return 0;
}

std::uint64_t joined_dataset::visit_stored(std::uint64_t first, std::uint64_t count, const stored_visitor& visit) const {
  return visit_new(first, count, [&](const array::extents& coordinates) {
    if (const auto one = part_with(coordinates)) {
      const std::uint64_t size = one->location ? one->location->size : parts_.files->stored_size(one->chunk);
      // an unwritten chunk means the part's fill value, which may differ from that of an existing store
      if (size == 0 && parts_.existing) return visit(coordinates, {});
      return size == 0 || visit(coordinates, size);
    }
    return !has_values(coordinates) || visit(coordinates, {});
  });
}

hdf5::stored_chunk joined_dataset::find_chunk(const array::extents& first, std::uint64_t size) const {
  const auto match = part_with(grid.chunk_of(first));
  if (!match) throw hdf5::failure("a chunk of several datasets is stored in none");
  if (!match->location) return parts_.files->find_chunk(match->chunk, size);
  return {.offset = match->location->offset, .mask = match->location->mask, .file = match->chunk.file};
}

std::shared_ptr<const io::byte_source> joined_dataset::bytes_of(std::size_t number) const {
  return number == hdf5::no_file ? hdf5::chunk_source::bytes_of(number) : parts_.files->bytes(number);
}

void joined_dataset::for_each_stored_part(const array::box& block, const part_visitor& visit) const {
  const std::size_t axis = parts_.axis;
  const std::uint64_t end = block.first[axis] + block.shape[axis];
  if (block.first[axis] < parts_.stored_count()) return;  // some of it is in the store
  for (std::size_t i = parts_.first_over(block.first[axis]); i < parts_.list.size() && parts_.list[i].first < end; ++i) {
    const joined_part& part = parts_.list[i];
    array::box in_part = block;
    const std::uint64_t first = std::max(block.first[axis], part.first);
    in_part.shape[axis] = std::min(end, part.first + part.count) - first;
    in_part.first[axis] = first - part.first;
    if (adds_axis()) in_part.first.erase(in_part.first.begin()), in_part.shape.erase(in_part.shape.begin());
    bool is_chunked = false;
    const auto visit_joined = [&](array::box in_joined) {
      if (adds_axis()) in_joined.first.insert(in_joined.first.begin(), 0), in_joined.shape.insert(in_joined.shape.begin(), 1);
      in_joined.first[axis] += part.first;
      visit(in_joined);
      is_chunked = true;
    };
    const hdf5::lock one_thread;  // also while the dataset is closed
    parts_.files->dataset(part.file, part.address)->for_each_stored_part(in_part, visit_joined);
    if (!is_chunked) visit_joined(in_part);
  }
}

void joined_dataset::read_values(hid_t memory, std::size_t size, const array::extents& first, const array::extents& count,
                                 const array::extents& extent, compressors::buffer& out, hdf5::vlen_allocator* strings,
                                 const array::extents& out_corner) const {
  const std::size_t axis = parts_.axis;
  const hdf5::lock one_thread;
  if (array::product(count) == 0) return;
  const std::uint64_t end = first[axis] + count[axis];
  if (first[axis] < parts_.stored_count()) {
    array::extents n = count;
    n[axis] = std::min(end, parts_.stored_count()) - first[axis];
    parts_.existing->read_block(memory, size, first, n, extent, out, strings);
  }
  for (std::size_t i = parts_.first_over(first[axis]); i < parts_.list.size() && parts_.list[i].first < end; ++i) {
    const joined_part& part = parts_.list[i];
    const std::uint64_t from = std::max(first[axis], part.first), to = std::min(end, part.first + part.count);
    array::extents part_start = first, n = count, corner = out_corner.empty() ? array::extents(first.size(), 0) : out_corner;
    part_start[axis] = from - part.first;
    n[axis] = to - from;
    corner[axis] += from - first[axis];
    const std::shared_ptr<const hdf5::source_dataset> one = parts_.files->dataset(part.file, part.address);
    if (!one->dependencies->obstacle.empty())
      throw hdf5::unsupported_dataset(one->dependencies->obstacle.code, "of \"" + parts_.files->list()[part.file].name + "\", " +
                                                                            one->dependencies->obstacle.sentence);
    const auto put = [&](const compressors::buffer& block) {
      const array::box place{corner, n};
      array::copy_elements(block, place, out, {array::extents(extent.size(), 0), extent}, place, size);
    };
    array::extents count_there = n;
    if (adds_axis()) {
      part_start.erase(part_start.begin());
      count_there.erase(count_there.begin());
    }
    if (!part.change && adds_axis()) {
      compressors::buffer values(static_cast<std::size_t>(array::product(n)) * size, std::byte{0});
      one->read_block(memory, size, part_start, count_there, count_there, values, strings);
      put(values);
      continue;
    }
    if (!part.change) {
      one->read_block(memory, size, part_start, n, extent, out, strings, corner);
      continue;
    }
    const std::size_t source_size = H5Tget_size(part.change->source_type()),
                      target_size = H5Tget_size(part.change->target_type());
    const std::size_t elements = static_cast<std::size_t>(array::product(n));
    compressors::buffer values(elements * source_size), changed(elements * std::max(target_size, size));
    one->read_block(part.change->source_type(), source_size, part_start, count_there, count_there, values);
    try {
      part.change->apply(values.data(), changed.data(), elements);
    } catch (const unrepresentable_value& e) {
      throw zarrbits::error(
          errc::not_joinable,
          "\"" + object.path + "\" of \"" + parts_.files->list()[part.file].name + "\" cannot be joined: " + e.what(),
          {parts_.files->list()[part.file].name, object.path});
    }
    hdf5::check(H5Tconvert(part.change->target_type(), memory, elements, changed.data(), nullptr, H5P_DEFAULT),
                "convert the values");
    changed.resize(elements * size);
    put(changed);
  }
}

std::unique_ptr<hdf5::chunk_source> open_chunks(hdf5::source_file& file, const hdf5::source_object& object) {
  if (object.joined) return std::make_unique<joined_dataset>(hdf5::opened_dataset(file, object));
  return hdf5::open_dataset(file, object);
}

}  // namespace zarrbits::conversion
