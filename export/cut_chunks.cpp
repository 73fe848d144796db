// SPDX-License-Identifier: BSL-1.0
#include "export/cut_chunks.hpp"

#include <algorithm>
#include <cstring>

namespace zarrbits::exporting {

using zarr::zarr_array;

namespace {

// Counts through all positions from `first` to before `end`. False after the last.
bool next(std::vector<std::uint64_t>& at, const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& end) {
  for (std::size_t d = at.size(); d-- > 0;) {
    if (++at[d] < end[d]) return true;
    at[d] = first[d];
  }
  return false;
}

// Where a chunk of the array ends along a dimension; the last one may reach over the edge, as far as it likes.
std::uint64_t end_of(const zarr_array& array, std::size_t dimension, std::uint64_t chunk) {
  const auto& edges = array.edges(dimension);
  const std::uint64_t start = edges.start(chunk), extent = array.shape()[dimension], length = edges.length(chunk);
  return length > extent - start ? extent : start + length;
}

// Of an element in a box, in C order.
std::size_t position(const std::vector<std::uint64_t>& at, const std::vector<std::uint64_t>& start,
                     const std::vector<std::uint64_t>& shape) {
  std::uint64_t p = 0;
  for (std::size_t d = 0; d < at.size(); ++d) p = p * shape[d] + (at[d] - start[d]);
  return static_cast<std::size_t>(p);
}

}  // namespace

cut_chunks::cut_chunks(const zarr_array& array, const dataset_form& form, std::vector<chunk_index> stored, std::uint64_t memory)
    : stored_(std::move(stored)) {
  const std::vector<std::uint64_t>& all = array.shape();
  for (std::size_t d = 0; d < all.size(); ++d) shape_.push_back(d < form.chunk.size() ? form.chunk[d] : all[d]);
  const std::size_t each = sizeof parts_[0] + 16 + 8 * all.size(), most = static_cast<std::size_t>(memory / each);
  for (std::size_t i = 0; i < stored_.size(); ++i) add_parts(array, i, most);
  std::sort(parts_.begin(), parts_.end());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (i == 0 || parts_[i].first != parts_[i - 1].first) first_.push_back(i);
  }
  first_.push_back(parts_.size());
}

void cut_chunks::add_parts(const zarr_array& array, std::size_t stored, std::size_t most) {
  const chunk_index& chunk = stored_[stored];
  std::vector<std::uint64_t> first, end;
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    first.push_back(array.edges(d).start(chunk[d]) / shape_[d]);
    end.push_back((end_of(array, d, chunk[d]) - 1) / shape_[d] + 1);
    if (__builtin_mul_overflow(count, end[d] - first[d], &count)) count = UINT64_MAX;
  }
  if (count > most - parts_.size())
    throw zarr::not_supported("an array whose chunks cannot be listed in `memory`; increase it");
  std::vector<std::uint64_t> at = first;
  do parts_.emplace_back(at, stored);
  while (next(at, first, end));
}

std::vector<cut_chunks::chunk_index> cut_chunks::chunks() const {
  std::vector<chunk_index> all;
  for (std::size_t i = 0; i + 1 < first_.size(); ++i) all.push_back(parts_[first_[i]].first);
  return all;
}

std::optional<std::vector<std::byte>> cut_chunks::elements(const zarr_array& array, std::size_t number,
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
  bool any = false;
  zarr::zarr_values values;
  for (std::size_t p = first_[number]; p < first_[number + 1]; ++p) {
    const chunk_index& chunk = stored_[parts_[p].second];
    auto bytes = array.read_stored(chunk);
    if (!bytes) continue;
    any = true;
    const std::vector<std::uint64_t> lengths = array.shape_of(chunk);
    std::vector<std::uint64_t> from(rank), first(rank), end(rank);
    bool begins = true;
    for (std::size_t d = 0; d < rank; ++d) {
      from[d] = array.edges(d).start(chunk[d]);
      first[d] = std::max(from[d], start[d]);
      end[d] = std::min(end_of(array, d, chunk[d]), start[d] + shape_[d]);
      begins = begins && from[d] >= start[d];
    }
    if (begins) stored += bytes->size();
    array.decode(chunk, std::move(*bytes), values);
    const std::size_t row = static_cast<std::size_t>(end[rank - 1] - first[rank - 1]) * size;
    std::vector<std::uint64_t> rows = end, at = first;
    rows[rank - 1] = first[rank - 1] + 1;  // a row at a time
    do std::memcpy(out.data() + position(at, start, shape_) * size, values.data.data() + position(at, from, lengths) * size, row);
    while (next(at, first, rows));
  }
  if (!any) return {};
  return out;
}

}  // namespace zarrbits::exporting
