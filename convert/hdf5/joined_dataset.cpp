// SPDX-License-Identifier: BSL-1.0
//
// What source_dataset does differently where it stands for the datasets of several files.
//
#include "convert/hdf5/chunk_index.hpp"
#include "convert/hdf5/joined_parts.hpp"
#include "convert/hdf5/source_dataset.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace zarrbits::conversion {

// After all was read of the dataset of the first file.
void source_dataset::stand_for_all() {
  const joined_parts& parts = *joined();
  dims[parts.axis] = parts.length;
  if (max_dims[parts.axis] != H5S_UNLIMITED) max_dims[parts.axis] = parts.length;
  stored_bytes = parts.stored_bytes;
  if (!parts.type) return;
  stored_type = h5::handle(H5Tcopy(parts.type), "copy a type");
  element_size = H5Tget_size(stored_type);
  type = describe_type(stored_type);
  if (!parts.missing_is_nan) return;
  dcpl = h5::handle(H5Pcopy(dcpl), "copy properties");
  const double missing = std::numeric_limits<double>::quiet_NaN();
  h5::check(H5Pset_fill_value(dcpl, H5T_NATIVE_DOUBLE, &missing), "set a fill value");
}

std::optional<std::pair<const joined_part*, std::vector<hsize_t>>> source_dataset::chunk_of_part(
    const std::vector<hsize_t>& at) const {
  const joined_parts& parts = *joined();
  std::vector<hsize_t> first = grid.start(at);
  const hsize_t begin = first[parts.axis], end = begin + grid.inside(at)[parts.axis];
  const std::size_t i = parts.first_over(begin);
  if (i == parts.list.size()) return {};
  const joined_part& part = parts.list[i];
  if (!part.stored_alike || begin < part.first || end > part.first + part.count) return {};
  if ((begin - part.first) % grid.chunk[parts.axis] != 0) return {};
  first[parts.axis] = begin - part.first;
  return std::pair{&part, std::move(first)};
}

void source_dataset::for_each_chunk_here(
    std::uint64_t first, std::uint64_t count,
    const std::function<bool(const std::vector<hsize_t>& at, std::optional<hsize_t> size)>& visit) const {
  if (!joined()) {
    for_each_stored_chunk(dataset, grid, shards, first, count,
                          [&](const std::vector<hsize_t>& at, hsize_t size) { return visit(at, size); });
    return;
  }
  const joined_parts& parts = *joined();
  for_each_chunk(shards, first, count, [&](const std::vector<hsize_t>& at) {
    if (const auto one = chunk_of_part(at)) {
      const hsize_t size = stored_size(parts.files->dataset(*one->first)->dataset, one->second);
      return size == 0 || visit(at, size);
    }
    const hsize_t begin = at[parts.axis] * grid.chunk[parts.axis], end = begin + grid.inside(at)[parts.axis];
    const std::size_t i = parts.first_over(begin);
    const bool gap = i == parts.list.size() || parts.list[i].first >= end;
    return gap || visit(at, {});
  });
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
  for (std::size_t i = parts.first_over(first[axis]); i < parts.list.size() && parts.list[i].first < end; ++i) {
    const joined_part& part = parts.list[i];
    const hsize_t from = std::max(first[axis], part.first), to = std::min(end, part.first + part.count);
    std::vector<hsize_t> there = first, n = count, corner(first.size(), 0);
    there[axis] = from - part.first;
    n[axis] = to - from;
    corner[axis] = from - first[axis];
    const std::shared_ptr<const source_dataset> one = parts.files->dataset(part);
    if (!part.change) {
      one->read_block(memory, size, there, n, room, out, strings, corner);
      continue;
    }
    const std::size_t before = H5Tget_size(part.change->from()), after = H5Tget_size(part.change->to());
    const std::size_t elements = static_cast<std::size_t>(product(n));
    buffer values(elements * before), changed(elements * std::max(after, size));
    one->read_block(part.change->from(), before, there, n, n, values);
    part.change->apply(values.data(), changed.data(), elements);
    h5::check(H5Tconvert(part.change->to(), memory, elements, changed.data(), nullptr, H5P_DEFAULT), "convert the values");
    changed.resize(elements * size);
    put_block(changed, size, n, room, corner, out);
  }
}

}  // namespace zarrbits::conversion
