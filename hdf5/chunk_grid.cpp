// SPDX-License-Identifier: BSL-1.0
#include "hdf5/chunk_grid.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace zarrbits::hdf5 {

namespace {

constexpr std::uint64_t max_product = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::uint64_t product(std::span<const hsize_t> numbers) {
  std::uint64_t p = 1;
  for (const hsize_t n : numbers) {
    if (n == 0) return 0;
  }
  for (const hsize_t n : numbers) {
    if (p > max_product / n) return max_product;
    p *= n;
  }
  return p;
}

std::uint64_t chunk_grid::chunks() const {
  std::vector<hsize_t> n(rank());
  for (std::size_t d = 0; d < rank(); ++d) n[d] = chunks_along(d);
  return product(n);
}

void chunk_grid::add_chunks(hsize_t length, hsize_t count) {
  if (count == 0) return;
  if (!runs.empty() && runs.back().length == length) {
    runs.back().count += count;
    return;
  }
  chunk_run next{length, count};
  if (!runs.empty()) {
    const chunk_run& last = runs.back();
    next.first_chunk = last.first_chunk + last.count;
    next.first_element = last.first_element + last.count * last.length;
  }
  chunk[axis] = runs.empty() ? length : std::max(chunk[axis], length);
  runs.push_back(next);
}

namespace {

// The last run that begins at or before a chunk, or an element.
const chunk_run& run_with(const std::vector<chunk_run>& runs, hsize_t chunk_run::*first, hsize_t number) {
  const auto next_run = std::partition_point(runs.begin(), runs.end(), [&](const chunk_run& r) { return r.*first <= number; });
  return next_run == runs.begin() ? *next_run : *(next_run - 1);
}

}  // namespace

hsize_t chunk_grid::start(std::size_t d, hsize_t number) const {
  if (!is_rectilinear() || d != axis) return number * chunk[d];
  const chunk_run& run = run_with(runs, &chunk_run::first_chunk, number);
  return run.first_element + (number - run.first_chunk) * run.length;
}

hsize_t chunk_grid::length(std::size_t d, hsize_t number) const {
  return is_rectilinear() && d == axis ? run_with(runs, &chunk_run::first_chunk, number).length : chunk[d];
}

hsize_t chunk_grid::chunk_of(std::size_t d, hsize_t element) const {
  if (!is_rectilinear() || d != axis) return element / chunk[d];
  const chunk_run& run = run_with(runs, &chunk_run::first_element, element);
  return run.first_chunk + (element - run.first_element) / run.length;
}

std::uint64_t chunk_grid::chunk_elements() const { return product(chunk); }

std::uint64_t chunk_grid::chunk_elements(std::span<const hsize_t> index) const {
  return is_rectilinear() ? product(extent(index)) : product(chunk);
}

std::vector<hsize_t> chunk_grid::start(std::span<const hsize_t> index) const {
  std::vector<hsize_t> s(rank());
  for (std::size_t d = 0; d < rank(); ++d) s[d] = start(d, index[d]);
  return s;
}

std::vector<hsize_t> chunk_grid::extent(std::span<const hsize_t> index) const {
  std::vector<hsize_t> n = chunk;
  if (is_rectilinear()) n[axis] = length(axis, index[axis]);
  return n;
}

std::vector<hsize_t> chunk_grid::inside(std::span<const hsize_t> index) const {
  std::vector<hsize_t> n(rank());
  for (std::size_t d = 0; d < rank(); ++d) n[d] = std::min(length(d, index[d]), shape[d] - start(d, index[d]));
  return n;
}

bool chunk_grid::is_partial(std::span<const hsize_t> index) const {
  for (std::size_t d = 0; d < rank(); ++d) {
    if (shape[d] - start(d, index[d]) < length(d, index[d])) return true;
  }
  return false;
}

bool chunk_grid::next(std::vector<hsize_t>& index) const {
  for (std::size_t d = rank(); d-- > 0;) {
    if (++index[d] < chunks_along(d)) return true;
    index[d] = 0;
  }
  return false;
}

std::vector<hsize_t> chunk_grid::chunk_at(std::uint64_t number) const {
  std::vector<hsize_t> index(rank());
  for (std::size_t d = rank(); d-- > 0;) {
    index[d] = number % chunks_along(d);
    number /= chunks_along(d);
  }
  return index;
}

std::vector<hsize_t> chunk_grid::chunk_of(std::span<const hsize_t> element) const {
  std::vector<hsize_t> index(rank());
  for (std::size_t d = 0; d < rank(); ++d) index[d] = chunk_of(d, element[d]);
  return index;
}

std::uint64_t chunk_grid::offset_in_chunk(std::span<const hsize_t> element) const {
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < rank(); ++d) {
    const hsize_t index = chunk_of(d, element[d]);
    number = number * length(d, index) + element[d] - start(d, index);
  }
  return number;
}

chunk_grid shards_of(const chunk_grid& grid, std::vector<hsize_t> chunks_per_shard) {
  chunk_grid shards;
  for (std::size_t d = 0; d < grid.rank(); ++d) shards.shape.push_back(grid.chunks_along(d));
  shards.chunk = std::move(chunks_per_shard);
  shards.chunk.resize(grid.rank(), 1);
  return shards;
}

std::uint64_t chunks_in(const chunk_grid& shards, std::uint64_t first, std::uint64_t count) {
  if (shards.chunk_elements() == 1) return count;
  if (count == shards.chunks()) return product(shards.shape);
  std::uint64_t n = 0;
  std::vector<hsize_t> shard = shards.chunk_at(first);
  for (std::uint64_t i = 0; i < count; ++i, shards.next(shard)) n += product(shards.inside(shard));
  return n;
}

namespace {

// Walks the shards from `first` to `last` (exclusive) of a grid, in C order, as boxes: a box without wanted shards is skipped at
// once.
class box_walk {
 public:
  box_walk(const chunk_grid& shards, std::uint64_t first, std::uint64_t last, const box_test& matches,
           const std::function<bool(const std::vector<hsize_t>&)>& visit)
      : shards_(shards),
        first_(first),
        last_(last),
        matches_(matches),
        visit_(visit),
        index_(shards.rank(), 0),
        strides_(shards.rank(), 1) {
    for (std::size_t d = shards.rank(); d-- > 1;) strides_[d - 1] = strides_[d] * shards.chunks_along(d);
  }
  // Walks along dimension d, from `low` to `high` (exclusive); `begin` shards come before. False: stop.
  bool descend(std::size_t d, hsize_t low, hsize_t high, std::uint64_t begin) {
    const std::uint64_t end = begin + (high - low) * strides_[d];
    if (low == high || begin >= last_ || end <= first_ || !has_match(d, low, high)) return true;
    if (high - low > 1) {
      const hsize_t middle = low + (high - low) / 2;
      return descend(d, low, middle, begin) && descend(d, middle, high, begin + (middle - low) * strides_[d]);
    }
    index_[d] = low;
    if (d + 1 == index_.size()) return visit_(index_);
    return descend(d + 1, 0, shards_.chunks_along(d + 1), begin);
  }

 private:
  // In chunks.
  bool has_match(std::size_t d, hsize_t low, hsize_t high) const {
    std::vector<hsize_t> first(index_.size(), 0), count = shards_.shape;
    for (std::size_t i = 0; i <= d; ++i) {
      const hsize_t from = i == d ? low : index_[i], to = i == d ? high : index_[i] + 1;
      first[i] = from * shards_.chunk[i];
      count[i] = std::min(to * shards_.chunk[i], shards_.shape[i]) - first[i];
    }
    return matches_(first, count);
  }

  const chunk_grid& shards_;
  std::uint64_t first_, last_;
  const box_test& matches_;
  const std::function<bool(const std::vector<hsize_t>&)>& visit_;
  std::vector<hsize_t> index_;
  std::vector<std::uint64_t> strides_;
};

// Visits the chunks of one shard, in C order. False: stop.
bool for_each_of_shard(const chunk_grid& shards, const std::vector<hsize_t>& shard,
                       const std::function<bool(const std::vector<hsize_t>&)>& visit) {
  const std::size_t rank = shards.rank();
  std::vector<hsize_t> begin(rank), end(rank), index(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    index[d] = begin[d] = shard[d] * shards.chunk[d];
    end[d] = begin[d] + std::min(shards.chunk[d], shards.shape[d] - begin[d]);
  }
  for (bool has_more = true; has_more;) {
    if (!visit(index)) return false;
    has_more = false;
    for (std::size_t d = rank; d-- > 0 && !has_more;) {
      has_more = ++index[d] < end[d];
      if (!has_more) index[d] = begin[d];
    }
  }
  return true;
}

}  // namespace

void for_each_chunk(const chunk_grid& shards, std::uint64_t first, std::uint64_t count,
                    const std::function<bool(const std::vector<hsize_t>&)>& visit) {
  if (count == 0) return;
  std::vector<hsize_t> shard = shards.chunk_at(first);
  for (std::uint64_t i = 0; i < count && for_each_of_shard(shards, shard, visit); ++i) shards.next(shard);
}

void for_each_matching_chunk(const chunk_grid& shards, std::uint64_t first, std::uint64_t count, const box_test& matches,
                             const std::function<bool(const std::vector<hsize_t>&)>& visit) {
  if (count == 0) return;
  const std::vector<hsize_t> one(shards.rank(), 1);
  const std::function<bool(const std::vector<hsize_t>&)> of_shard = [&](const std::vector<hsize_t>& shard) {
    return for_each_of_shard(shards, shard,
                             [&](const std::vector<hsize_t>& index) { return !matches(index, one) || visit(index); });
  };
  if (shards.rank() == 0) of_shard({});
  else box_walk(shards, first, first + count, matches, of_shard).descend(0, 0, shards.chunks_along(0), 0);
}

std::vector<hsize_t> chunk_shape_for(std::span<const hsize_t> shape, std::uint64_t element, std::uint64_t target) {
  std::vector<hsize_t> chunk(shape.size(), 1);
  std::uint64_t capacity = std::max<std::uint64_t>(1, target / std::max<std::uint64_t>(1, element));
  for (std::size_t d = shape.size(); d-- > 0;) {
    const hsize_t extent = std::max<hsize_t>(1, shape[d]);
    if (extent <= capacity) {
      chunk[d] = extent;
      capacity /= extent;
    } else {
      const hsize_t pieces = extent / capacity + (extent % capacity != 0);
      chunk[d] = extent / pieces + (extent % pieces != 0);  // pieces of about equal length
      break;
    }
  }
  return chunk;
}

}  // namespace zarrbits::hdf5
