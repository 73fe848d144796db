// SPDX-License-Identifier: BSL-1.0
#include "array/chunk_grid.hpp"

#include <algorithm>
#include <utility>

namespace zarrbits::array {

extents chunk_grid::counts() const {
  extents n(rank());
  for (std::size_t d = 0; d < rank(); ++d) n[d] = chunks_along(d);
  return n;
}

std::uint64_t chunk_grid::chunks() const { return product(counts()); }

void chunk_grid::add_chunks(std::size_t d, std::uint64_t length, std::uint64_t count) {
  if (count == 0) return;
  if (runs.empty()) runs.resize(rank());
  std::vector<chunk_run>& along = runs[d];
  if (!along.empty() && along.back().length == length) {
    along.back().count += count;
    return;
  }
  chunk_run next{length, count};
  if (!along.empty()) {
    const chunk_run& last = along.back();
    next.first_chunk = last.first_chunk + last.count;
    next.first_element = last.first_element + last.count * last.length;
  }
  chunk[d] = along.empty() ? length : std::max(chunk[d], length);
  along.push_back(next);
}

namespace {

// The last run that begins at or before a chunk, or an element.
const chunk_run& run_with(const std::vector<chunk_run>& runs, std::uint64_t chunk_run::*first, std::uint64_t number) {
  const auto next_run = std::partition_point(runs.begin(), runs.end(), [&](const chunk_run& r) { return r.*first <= number; });
  return next_run == runs.begin() ? *next_run : *(next_run - 1);
}

}  // namespace

std::uint64_t chunk_grid::start(std::size_t d, std::uint64_t number) const {
  if (!is_rectilinear(d)) return number * chunk[d];
  const chunk_run& run = run_with(runs[d], &chunk_run::first_chunk, number);
  return run.first_element + (number - run.first_chunk) * run.length;
}

std::uint64_t chunk_grid::length(std::size_t d, std::uint64_t number) const {
  return is_rectilinear(d) ? run_with(runs[d], &chunk_run::first_chunk, number).length : chunk[d];
}

std::uint64_t chunk_grid::chunk_of(std::size_t d, std::uint64_t element) const {
  if (!is_rectilinear(d)) return element / chunk[d];
  const chunk_run& run = run_with(runs[d], &chunk_run::first_element, element);
  return run.first_chunk + (element - run.first_element) / run.length;
}

std::uint64_t chunk_grid::chunk_elements() const { return product(chunk); }

std::uint64_t chunk_grid::chunk_elements(std::span<const std::uint64_t> index) const {
  return is_rectilinear() ? product(extent(index)) : product(chunk);
}

extents chunk_grid::start(std::span<const std::uint64_t> index) const {
  extents s(rank());
  for (std::size_t d = 0; d < rank(); ++d) s[d] = start(d, index[d]);
  return s;
}

extents chunk_grid::extent(std::span<const std::uint64_t> index) const {
  extents n = chunk;
  for (std::size_t d = 0; d < runs.size(); ++d) n[d] = length(d, index[d]);
  return n;
}

extents chunk_grid::inside(std::span<const std::uint64_t> index) const {
  extents n(rank());
  for (std::size_t d = 0; d < rank(); ++d) {
    const std::uint64_t first = start(d, index[d]);
    n[d] = std::min(length(d, index[d]), shape[d] - std::min(shape[d], first));
  }
  return n;
}

bool chunk_grid::is_partial(std::span<const std::uint64_t> index) const {
  for (std::size_t d = 0; d < rank(); ++d) {
    if (shape[d] - start(d, index[d]) < length(d, index[d])) return true;
  }
  return false;
}

box chunk_grid::chunks_over(const box& b) const {
  box chunks{extents(rank()), extents(rank())};
  for (std::size_t d = 0; d < rank(); ++d) {
    chunks.first[d] = chunk_of(d, b.first[d]);
    chunks.shape[d] = chunk_of(d, b.first[d] + b.shape[d] - 1) - chunks.first[d] + 1;
  }
  return chunks;
}

extents chunk_grid::chunk_of(std::span<const std::uint64_t> element) const {
  extents index(rank());
  for (std::size_t d = 0; d < rank(); ++d) index[d] = chunk_of(d, element[d]);
  return index;
}

std::uint64_t chunk_grid::offset_in_chunk(std::span<const std::uint64_t> element) const {
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < rank(); ++d) {
    const std::uint64_t index = chunk_of(d, element[d]);
    number = number * length(d, index) + element[d] - start(d, index);
  }
  return number;
}

chunk_grid shards_of(const chunk_grid& grid, extents chunks_per_shard) {
  chunk_grid shards{grid.counts(), std::move(chunks_per_shard)};
  shards.chunk.resize(grid.rank(), 1);
  return shards;
}

std::uint64_t chunks_in(const chunk_grid& shards, std::uint64_t first, std::uint64_t count) {
  if (shards.chunk_elements() == 1) return count;
  if (count == shards.chunks()) return product(shards.shape);
  std::uint64_t n = 0;
  extents shard = shards.chunk_at(first);
  for (std::uint64_t i = 0; i < count; ++i, shards.next(shard)) n += product(shards.inside(shard));
  return n;
}

namespace {

// Walks the shards from `first` to `last` (exclusive) of a grid, in C order, as boxes: a box without wanted shards is skipped at
// once.
class box_walk {
 public:
  box_walk(const chunk_grid& shards, std::uint64_t first, std::uint64_t last, const box_test& matches,
           const std::function<bool(const extents&)>& visit)
      : shards_(shards),
        first_(first),
        last_(last),
        matches_(matches),
        visit_(visit),
        index_(shards.rank(), 0),
        strides_(strides_of(shards.counts())) {}
  // Walks along dimension d, from `low` to `high` (exclusive); `begin` shards come before. False: stop.
  bool descend(std::size_t d, std::uint64_t low, std::uint64_t high, std::uint64_t begin) {
    const std::uint64_t end = begin + (high - low) * strides_[d];
    if (low == high || begin >= last_ || end <= first_ || !has_match(d, low, high)) return true;
    if (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      return descend(d, low, middle, begin) && descend(d, middle, high, begin + (middle - low) * strides_[d]);
    }
    index_[d] = low;
    if (d + 1 == index_.size()) return visit_(index_);
    return descend(d + 1, 0, shards_.chunks_along(d + 1), begin);
  }

 private:
  // In chunks.
  bool has_match(std::size_t d, std::uint64_t low, std::uint64_t high) const {
    extents first(index_.size(), 0), count = shards_.shape;
    for (std::size_t i = 0; i <= d; ++i) {
      const std::uint64_t from = i == d ? low : index_[i], to = i == d ? high : index_[i] + 1;
      first[i] = from * shards_.chunk[i];
      count[i] = std::min(to * shards_.chunk[i], shards_.shape[i]) - first[i];
    }
    return matches_(first, count);
  }

  const chunk_grid& shards_;
  std::uint64_t first_, last_;
  const box_test& matches_;
  const std::function<bool(const extents&)>& visit_;
  extents index_;
  std::vector<std::uint64_t> strides_;
};

// Visits the chunks of one shard, in C order. False: stop.
bool for_each_of_shard(const chunk_grid& shards, const extents& shard, const std::function<bool(const extents&)>& visit) {
  const box chunks = shards.box_of(shard);
  extents index = chunks.first;
  do {
    if (!visit(index)) return false;
  } while (next_index(index, chunks.shape, chunks.first));
  return true;
}

}  // namespace

void for_each_chunk(const chunk_grid& shards, std::uint64_t first, std::uint64_t count,
                    const std::function<bool(const extents&)>& visit) {
  if (count == 0) return;
  extents shard = shards.chunk_at(first);
  for (std::uint64_t i = 0; i < count && for_each_of_shard(shards, shard, visit); ++i) shards.next(shard);
}

void for_each_matching_chunk(const chunk_grid& shards, std::uint64_t first, std::uint64_t count, const box_test& matches,
                             const std::function<bool(const extents&)>& visit) {
  if (count == 0) return;
  const extents one(shards.rank(), 1);
  const std::function<bool(const extents&)> of_shard = [&](const extents& shard) {
    return for_each_of_shard(shards, shard, [&](const extents& index) { return !matches(index, one) || visit(index); });
  };
  if (shards.rank() == 0) of_shard({});
  else box_walk(shards, first, first + count, matches, of_shard).descend(0, 0, shards.chunks_along(0), 0);
}

extents chunk_shape_for(std::span<const std::uint64_t> shape, std::uint64_t element, std::uint64_t target) {
  extents chunk(shape.size(), 1);
  std::uint64_t capacity = std::max<std::uint64_t>(1, target / std::max<std::uint64_t>(1, element));
  for (std::size_t d = shape.size(); d-- > 0;) {
    const std::uint64_t extent = std::max<std::uint64_t>(1, shape[d]);
    if (extent <= capacity) {
      chunk[d] = extent;
      capacity /= extent;
    } else {
      const std::uint64_t pieces = extent / capacity + (extent % capacity != 0);
      chunk[d] = extent / pieces + (extent % pieces != 0);  // pieces of about equal length
      break;
    }
  }
  return chunk;
}

}  // namespace zarrbits::array
