// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/chunk_reader.hpp"

#include "array/chunk_grid.hpp"
#include "convert/from_hdf5/chunk_transcoder.hpp"
#include "hdf5/source_files.hpp"
#include "metadata/chunk_key_encoding.hpp"
#include "text/format.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

namespace {

constexpr std::uint64_t largest_stored = std::uint64_t{4} << 30;
constexpr std::uint64_t max_chunks = 50'000'000;  // upper limit of chunks that are written though the source does not store each
                                                  // of them

// If a chunk's values are one range of all values, and the beginning of the chunk: the number of values before it, and in it.
std::optional<std::pair<std::uint64_t, std::uint64_t>> contiguous_run(const array::chunk_grid& grid,
                                                                      const array::extents& chunk_index) {
  const array::extents inside = grid.inside(chunk_index), first = grid.start(chunk_index);
  std::size_t d = 0;
  while (d < grid.rank() && inside[d] == 1) ++d;
  for (++d; d < grid.rank(); ++d) {
    if (inside[d] != grid.shape[d] || inside[d] != grid.length(d, chunk_index[d])) return {};
  }
  std::uint64_t preceding = 0;
  for (std::size_t i = 0; i < grid.rank(); ++i) preceding = preceding * grid.shape[i] + first[i];
  return std::pair{preceding, array::product(inside)};
}

void add_absent(chunk_batch& next, std::uint64_t chunks) {
  array_result absent;
  absent.counts.absent = chunks;
  next.unit->add(next.part, absent);
}

}  // namespace

void chunk_reader::read(chunk_batch& next, const chunk_range& range) {
  if (next.plan->chunk_origin() == array_plan::origin::chunks) read_stored(next, range);
  else read_values(next, range);
  submit_(next);
  leave_shard(next);
}

void chunk_reader::enter_shard(chunk_batch& next, const array::extents& chunk_index) {
  const hdf5::chunk_source& data = next.plan->data;
  if (!data.sharded()) return;
  array::extents shard = data.shards.chunk_of(chunk_index);
  if (next.shard && shard == next.shard_index) return;
  submit_(next);
  leave_shard(next);
  next.shard =
      std::make_shared<zarr::concurrent_shard>(out_, metadata::chunk_key(next.node().store_path, shard, next.plan->trailing),
                                               static_cast<std::size_t>(data.shards.chunk_elements()));
  if (next.plan->in_store) {
    if (auto stored_shard = next.plan->in_store->shard(shard))
      next.shard->begin_with(*stored_shard->bytes, stored_shard->size, stored_shard->index);
  }
  next.shard_index = std::move(shard);
}

void chunk_reader::leave_shard(chunk_batch& next) {
  if (!next.shard) return;
  const hdf5::lock::unlock_guard unlocked;  // the last chunk may be written here
  const std::uint64_t overhead = std::exchange(next.shard, nullptr)->close();
  array_result index;
  index.store_bytes = overhead;
  next.unit->add(next.part, index);
}

void chunk_reader::read_stored(chunk_batch& next, const chunk_range& range) {
  const hdf5::chunk_source& data = next.plan->data;
  const array_plan& plan = *next.plan;
  const chunk_transcoder maker(plan);
  std::uint64_t stored = 0;
  std::string missing;
  std::vector<std::uint64_t> visited;
  const hdf5::lock one_thread;
  const std::uint64_t in_store = data.visit_stored(
      range.first, range.count, [&](const array::extents& chunk_index, std::optional<std::uint64_t> stored_size) {
        if (next.stopped()) return false;
        if (plan.writes_gaps) visited.push_back(array::ravel(chunk_index, data.grid.counts()));
        const bool of_several = !stored_size;
        const std::uint64_t size = stored_size.value_or(0);
        enter_shard(next, chunk_index);
        if (stored++ == 0 && plan.strategy != array_plan::strategy_type::copy_blosc)
          missing = data.filters.unavailable_filters(data.type);
        chunk_input chunk;
        chunk.index = chunk_index;
        chunk.progress = size;
        const bool is_read = plan.is_read(chunk_index, of_several), read = is_read && missing.empty();
        const std::uint64_t cost = read ? maker.memory_from_read() : maker.memory_from_stored(size);
        if (read) {
          chunk.form = chunk_input::form_type::via_libhdf5;
          chunk.drop_if_fill = of_several && !plan.is_complete() && !plan.keeps_empty && !data.overlaps_stored_part(chunk_index);
        } else if (size > largest_stored) {
          chunk.form = chunk_input::form_type::via_libhdf5;
          chunk.reason = "a stored size of " + text::format_bytes(size);
        } else {
          try {
            hdf5::stored_chunk source_chunk = data.find_chunk(data.grid.start(chunk_index), size);
            chunk.mask = source_chunk.mask;
            chunk.bytes = std::move(source_chunk.bytes);
            if (source_chunk.offset) {
              chunk.form = chunk_input::form_type::in_file;
              chunk.offset = *source_chunk.offset;
              chunk.size = size;
              chunk.file = source_chunk.file;
            }
          } catch (const hdf5::failure& e) {
            chunk.form = chunk_input::form_type::via_libhdf5;
            chunk.reason = e.what();
          } catch (const compressors::corrupt_chunk& e) {
            chunk.form = chunk_input::form_type::via_libhdf5;
            chunk.reason = e.what();
          }
          // a writer without the filter may have stored the chunk unfiltered
          if (!missing.empty() && !data.filters.unavailable_filters(data.type, chunk.mask).empty()) {
            throw hdf5::missing_filter(missing);
          }
          if (is_read) {
            chunk.form = chunk_input::form_type::via_libhdf5;
            chunk.bytes = {};
          }
          // such chunks are stored without filters, but their mask does not say so
          if (data.filters.partial_unfiltered && data.grid.is_partial(chunk_index)) chunk.mask = 0xFFFFFFFFU;
        }
        const bool copied = chunk.form == chunk_input::form_type::in_file && maker.is_copied(chunk_index, size, chunk.mask);
        next.add(std::move(chunk), copied ? next.memory_of_copy(size) : cost);
        if (next.is_full()) submit_(next);
        return true;
      });
  const std::uint64_t absent = array::chunks_in(data.shards, range.first, range.count) - stored - in_store;
  if (plan.writes_gaps) add_gaps(next, range, absent, std::move(visited));
  else add_absent(next, absent);
}

// Adds the chunks of a range that were not visited, which have the fill value: there are this many. And, with the last range,
// those that the dataset does not have.
void chunk_reader::add_gaps(chunk_batch& next, const chunk_range& range, std::uint64_t gaps, std::vector<std::uint64_t> visited) {
  const hdf5::chunk_source& data = next.plan->data;
  const chunk_transcoder maker(*next.plan);
  const array::extents counts = data.grid.counts();
  const auto require_few = [&](std::uint64_t chunks) {
    if (chunks > max_chunks)
      throw hdf5::unsupported_dataset(reason_code::too_large, "it would take " + std::to_string(chunks) + " chunks");
    next.plan->require_plausible_gaps(chunks);
  };
  const auto add = [&](const array::extents& chunk_index) {
    chunk_input chunk;
    chunk.index = chunk_index;
    chunk.form = chunk_input::form_type::via_libhdf5;
    next.add(std::move(chunk), maker.memory_from_read());
    if (next.is_full()) submit_(next);
  };
  if (gaps > 0) {
    require_few(gaps);
    std::sort(visited.begin(), visited.end());
    array::for_each_chunk(data.shards, range.first, range.count, [&](const array::extents& chunk_index) {
      if (!std::binary_search(visited.begin(), visited.end(), array::ravel(chunk_index, counts))) add(chunk_index);
      return !next.stopped();
    });
  }
  if (!next.plan->writes_beyond() || range.first + range.count < data.shards.chunks()) return;
  array::box whole{array::extents(counts.size(), 0), {}};
  for (std::size_t d = 0; d < counts.size(); ++d)
    whole.shape.push_back((next.plan->meta.shape[d] + data.grid.chunk[d] - 1) / data.grid.chunk[d]);
  require_few(whole.elements() - array::product(counts));
  array::for_each_index(whole, [&](const array::extents& chunk_index) {
    bool is_beyond = false;
    for (std::size_t d = 0; d < counts.size(); ++d) is_beyond = is_beyond || chunk_index[d] >= counts[d];
    if (is_beyond && !next.stopped()) add(chunk_index);
  });
}

void chunk_reader::read_values(chunk_batch& next, const chunk_range& range) {
  const hdf5::chunk_source& data = next.plan->data;
  const array_plan& plan = *next.plan;
  const array::chunk_grid& grid = data.grid;
  const std::uint64_t total = grid.chunks();
  const std::uint64_t chunks = array::chunks_in(data.shards, range.first, range.count);
  std::uint64_t absent = 0;
  std::optional<std::uint64_t> address;
  {
    const hdf5::lock one_thread;
    if (data.nothing_stored() && !plan.materialize) {
      absent = chunks;
    } else {
      if (const std::string missing = data.layout == H5D_CHUNKED ? data.filters.unavailable_filters(data.type) : "";
          !missing.empty() && !data.nothing_stored()) {
        throw hdf5::missing_filter(missing);
      }
      if (!data.skips_empty() && total > max_chunks)
        throw hdf5::unsupported_dataset(reason_code::too_large, "it would take " + std::to_string(total) + " chunks");
      if (plan.chunk_origin() == array_plan::origin::range) address = data.contiguous_address();
    }
  }
  const chunk_transcoder maker(plan);
  const std::uint64_t read_cost = maker.memory_from_read(),
                      plain_cost = maker.memory_from_stored(grid.chunk_elements() * data.element_size);
  std::uint64_t visited = 0;
  std::vector<std::uint64_t> visited_chunks;
  const auto visit = [&](const array::extents& chunk_index) {
    if (next.stopped()) return false;
    if (data.is_in_store(chunk_index)) return true;
    if (plan.writes_gaps) visited_chunks.push_back(array::ravel(chunk_index, grid.counts()));
    if (++visited > max_chunks)
      throw hdf5::unsupported_dataset(reason_code::too_large,
                                      "it would take more than " + std::to_string(max_chunks) + " chunks");
    enter_shard(next, chunk_index);
    chunk_input chunk;
    chunk.index = chunk_index;
    chunk.progress = range.bytes / chunks;
    std::uint64_t memory = read_cost;
    if (const auto run = address ? contiguous_run(grid, chunk_index) : std::nullopt) {
      chunk.form = chunk_input::form_type::range;
      chunk.offset = *address + run->first * data.element_size;
      chunk.size = run->second * data.element_size;
      memory = maker.is_copied(chunk_index, chunk.size, 0) ? next.memory_of_copy(chunk.size) : plain_cost;
    } else {
      chunk.form = chunk_input::form_type::via_libhdf5;
      // chunks never written look the same here as chunks of fill values
      chunk.drop_if_fill = (data.layout == H5D_VIRTUAL || data.layout == H5D_CHUNKED) && !plan.is_complete() &&
                           !plan.keeps_empty && !data.overlaps_stored_part(chunk_index);
    }
    next.add(std::move(chunk), memory);
    if (next.is_full()) submit_(next);
    return true;
  };
  if (absent < chunks) absent = data.visit_all(range.first, range.count, visit);
  if (plan.writes_gaps) add_gaps(next, range, absent, std::move(visited_chunks));
  else add_absent(next, absent);
}

}  // namespace zarrbits::conversion
