// SPDX-License-Identifier: BSL-1.0
#include "export/regridder.hpp"

#include <algorithm>
#include <cstring>

namespace zarrbits::exporting {

using zarr::zarr_array;

namespace {

// Counts through all positions from `first` to before `end`. False after the last.
bool next(std::vector<std::uint64_t>& index, const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& end) {
  for (std::size_t d = index.size(); d-- > 0;) {
    if (++index[d] < end[d]) return true;
    index[d] = first[d];
  }
  return false;
}

// Where a chunk of the array ends along a dimension; the last one may reach over the edge, as far as it likes.
std::uint64_t end_of(const zarr_array& array, std::size_t dimension, std::uint64_t chunk) {
  const auto& edges = array.grid(dimension);
  const std::uint64_t start = edges.start(chunk), extent = array.shape()[dimension], length = edges.length(chunk);
  return length > extent - start ? extent : start + length;
}

// The position of an element in a box, in C order.
std::size_t position(const std::vector<std::uint64_t>& index, const std::vector<std::uint64_t>& start,
                     const std::vector<std::uint64_t>& shape) {
  std::uint64_t p = 0;
  for (std::size_t d = 0; d < index.size(); ++d) p = p * shape[d] + (index[d] - start[d]);
  return static_cast<std::size_t>(p);
}

}  // namespace

regridder::regridder(const zarr_array& array, const dataset_spec& form, std::vector<chunk_index> stored, std::uint64_t memory)
    : stored_(std::move(stored)) {
  const std::vector<std::uint64_t>& shape = array.shape();
  for (std::size_t d = 0; d < shape.size(); ++d) shape_.push_back(d < form.chunk.size() ? form.chunk[d] : shape[d]);
  const std::size_t part_bytes = sizeof parts_[0] + 16 + 8 * shape.size(),
                    max_parts = static_cast<std::size_t>(memory / part_bytes);
  for (std::size_t i = 0; i < stored_.size(); ++i) add_parts(array, i, max_parts);
  std::sort(parts_.begin(), parts_.end());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (i == 0 || parts_[i].first != parts_[i - 1].first) first_.push_back(i);
  }
  first_.push_back(parts_.size());
}

void regridder::add_parts(const zarr_array& array, std::size_t stored, std::size_t max_parts) {
  const chunk_index& chunk = stored_[stored];
  std::vector<std::uint64_t> first, end;
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    first.push_back(array.grid(d).start(chunk[d]) / shape_[d]);
    end.push_back((end_of(array, d, chunk[d]) - 1) / shape_[d] + 1);
    if (__builtin_mul_overflow(count, end[d] - first[d], &count)) count = UINT64_MAX;
  }
  if (count > max_parts - parts_.size())
    throw zarr::not_supported("an array whose chunks cannot be listed in `memory`; increase it");
  std::vector<std::uint64_t> index = first;
  do parts_.emplace_back(index, stored);
  while (next(index, first, end));
}

std::vector<regridder::chunk_index> regridder::chunks() const {
  std::vector<chunk_index> result;
  for (std::size_t i = 0; i + 1 < first_.size(); ++i) result.push_back(parts_[first_[i]].first);
  return result;
}

std::optional<std::vector<std::byte>> regridder::elements(const zarr_array& array, std::size_t number,
                                                          std::uint64_t& stored) const {
  const std::size_t size = array.type().size, rank = shape_.size();
  std::vector<std::uint64_t> start(rank);
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    start[d] = parts_[first_[number]].first[d] * shape_[d];
    count *= shape_[d];
  }
  std::vector<std::byte> out(static_cast<std::size_t>(count) * size);
  const std::vector<std::byte>& fill = array.fill().data;
  for (std::size_t i = 0; i < out.size(); i += size) std::memcpy(out.data() + i, fill.data(), size);
  bool has_data = false;
  zarr::element_buffer values;
  for (std::size_t p = first_[number]; p < first_[number + 1]; ++p) {
    const chunk_index& chunk = stored_[parts_[p].second];
    auto bytes = array.read_stored(chunk);
    if (!bytes) continue;
    has_data = true;
    const std::vector<std::uint64_t> lengths = array.shape_of(chunk);
    std::vector<std::uint64_t> chunk_start(rank), first(rank), end(rank);
    bool begins = true;
    for (std::size_t d = 0; d < rank; ++d) {
      chunk_start[d] = array.grid(d).start(chunk[d]);
      first[d] = std::max(chunk_start[d], start[d]);
      end[d] = std::min(end_of(array, d, chunk[d]), start[d] + shape_[d]);
      begins = begins && chunk_start[d] >= start[d];
    }
    if (begins) stored += bytes->size();
    array.decode(chunk, std::move(*bytes), values);
    const std::size_t row = static_cast<std::size_t>(end[rank - 1] - first[rank - 1]) * size;
    std::vector<std::uint64_t> rows = end, index = first;
    rows[rank - 1] = first[rank - 1] + 1;  // a row at a time
    do
      std::memcpy(out.data() + position(index, start, shape_) * size,
                  values.data.data() + position(index, chunk_start, lengths) * size, row);
    while (next(index, first, rows));
  }
  if (!has_data) return {};
  return out;
}

}  // namespace zarrbits::exporting
