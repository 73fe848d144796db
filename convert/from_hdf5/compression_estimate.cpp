// SPDX-License-Identifier: BSL-1.0
#include "convert/from_hdf5/compression_estimate.hpp"

#include "convert/from_hdf5/compress.hpp"
#include "convert/pipeline/compression.hpp"
#include "hdf5/vlen_allocator.hpp"

#include <algorithm>
#include <cstring>

namespace zarrbits::conversion {

namespace {

constexpr std::uint64_t block_bytes = 64U << 10;  // also the fewest bytes of an array that are worth a sentence
constexpr std::uint64_t max_blocks = 8;
constexpr double worth_it = 0.75;  // of the size without compression
// The cheapest that convert itself chooses: docs/explanation/chunks.md.
constexpr compression suggested{compressor::blosc, 1, blosc_compressor::zstd, blosc_shuffle::bytes};

// Blocks that tile the array: its chunks or, if they are large, pieces of chunks.
array::chunk_grid blocks_of(const array::chunk_grid& grid, std::size_t element) {
  array::chunk_grid blocks{grid.shape, array::extents(grid.rank(), 1)};
  std::uint64_t capacity = block_bytes / std::max<std::size_t>(1, element);
  for (std::size_t d = grid.rank(); d-- > 0 && capacity > 1;) {
    blocks.chunk[d] = std::min<std::uint64_t>(capacity, grid.chunk[d]);
    capacity /= blocks.chunk[d];
  }
  return blocks;
}

bool can_be_compressed(const dataset_plan& dataset) {
  const convert_options& o = dataset.options;
  if (o.encoding.compress || o.target.references || o.encoding.profile.value_or(profile::recode) != profile::recode) return false;
  if (dataset.parts().size() != 1 || dataset.parts()[0].kind != dataset_part::kind_type::array) return false;
  const hdf5::chunk_source& data = dataset.data;
  return data.stored_bytes >= block_bytes && data.filters.empty() && data.source_filters.empty() && !data.is_remote();
}

bool is_plain(const array_plan& a) {
  using plan_strategy = array_plan::strategy_type;
  return (a.strategy == plan_strategy::copy || a.strategy == plan_strategy::read || a.strategy == plan_strategy::decode) &&
         a.target_compression.kind == compressor::none && !a.in_store && !a.text && !hdf5::holds_variable(a.leaf) &&
         !hdf5::holds_references(a.leaf);
}

bool is_filled_with(const compressors::buffer& values, const compressors::buffer& fill) {
  for (std::size_t i = 0; i < values.size(); i += fill.size()) {
    if (std::memcmp(values.data() + i, fill.data(), fill.size()) != 0) return false;
  }
  return true;
}

}  // namespace

std::optional<planned_dataset::compression_choice> estimate_compression(const dataset_plan& dataset, std::uint64_t store_bytes) {
  if (!can_be_compressed(dataset)) return {};
  const auto plan = dataset.array(0);
  if (!is_plain(*plan)) return {};
  const hdf5::chunk_source& data = dataset.data;
  const std::size_t size = plan->view.size;
  const array::chunk_grid blocks = blocks_of(data.grid, size);
  const std::uint64_t total = blocks.chunks(), count = std::min(total, max_blocks);
  // fill values of chunks that were never written take no space in the store either
  const bool has_holes = data.stored_bytes < array::product(data.dims) * data.element_size;
  std::uint64_t plain = 0, small = 0;
  try {
    for (std::uint64_t i = 0; i < count; ++i) {
      // the middle of each of `count` equal parts
      const array::extents block_index = blocks.chunk_at(total / count * i + (total / count) / 2);
      const array::extents shape = blocks.inside(block_index);
      const std::uint64_t bytes = array::product(shape) * size;
      if (bytes > block_bytes) return {};  // elements that are larger than a block
      compressors::buffer values(static_cast<std::size_t>(bytes), std::byte{0});
      data.read_block(plan->view.memory, size, blocks.start(block_index), shape, shape, values);
      if (has_holes && is_filled_with(values, plan->fill)) continue;
      plain += values.size();
      small += compressed(suggested, values, plan->typesize).size();
    }
  } catch (const hdf5::failure&) {  // convert says which chunk is damaged
    return {};
  } catch (const compressors::corrupt_chunk&) {
    return {};
  }
  const double ratio = plain == 0 ? 1 : static_cast<double>(small) / static_cast<double>(plain);
  if (ratio > worth_it) return {};
  return planned_dataset::compression_choice{text_of(suggested),
                                             static_cast<std::uint64_t>(ratio * static_cast<double>(store_bytes)), plain};
}

}  // namespace zarrbits::conversion
