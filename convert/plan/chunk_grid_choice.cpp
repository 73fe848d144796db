// SPDX-License-Identifier: BSL-1.0
#include "convert/plan/chunk_grid_choice.hpp"

#include "array/chunk_grid.hpp"
#include "convert/concat/joined_parts.hpp"
#include "convert/plan/dimension_chunks.hpp"
#include "hdf5/dimensions.hpp"
#include "hdf5/external_files.hpp"
#include "text/format.hpp"

#include <zarrbits/convert.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace zarrbits::conversion {

namespace {

// The shard's index has 16 bytes per chunk, and is held in memory.
constexpr std::uint64_t max_chunks_per_shard = 1U << 22;

void check_shape(const char* option, const std::vector<std::uint64_t>& shape) {
  if (shape.size() > H5S_MAX_RANK) {
    throw zarrbits::error(errc::invalid_option, std::string(option) + " has more than " + std::to_string(H5S_MAX_RANK) +
                                                    " dimensions, which no dataset has");
  }
  for (const std::uint64_t n : shape) {
    if (n == 0)
      throw zarrbits::error(errc::invalid_option, std::string("an extent of ") + option + " is 0; extents are at least 1");
    if (n > std::uint64_t{1} << 62)
      throw zarrbits::error(errc::invalid_option, std::string("an extent of ") + option + " is more than there can be");
  }
}

}  // namespace

void check_grid(const std::vector<std::uint64_t>& chunk, const shard_size& shard) {
  check_shape("`chunk`", chunk);
  check_shape("`shard`", shard.shape);
  if (shard.bytes > 0 && !shard.shape.empty())
    throw zarrbits::error(errc::invalid_option, "`shard` has bytes and a shape; use one of them");
}

array::extents chunks_per_shard(const shard_size& requested, const array::chunk_grid& grid, std::uint64_t element_size) {
  array::extents n(grid.rank(), 1);
  if (grid.chunks() <= 1) return n;
  if (requested.bytes > 0) {
    const std::uint64_t chunk = array::product(array::extents{grid.chunk_elements(), std::max<std::uint64_t>(1, element_size)});
    array::extents chunk_counts;
    for (std::size_t d = 0; d < grid.rank(); ++d) chunk_counts.push_back(grid.chunks_along(d));
    const std::uint64_t chunk_limit = std::min(requested.bytes / chunk, max_chunks_per_shard);
    return array::chunk_shape_for(chunk_counts, 1, chunk_limit);
  }
  if (requested.shape.size() != grid.rank()) return n;
  for (std::size_t d = 0; d < n.size(); ++d)
    n[d] = requested.shape[d] / grid.chunk[d] + (requested.shape[d] % grid.chunk[d] != 0);
  if (array::product(n) > max_chunks_per_shard) {
    throw zarrbits::error(errc::no_match, "a shard would have " + std::to_string(array::product(n)) +
                                              " chunks, whose index alone has " + text::format_bytes(array::product(n) * 16) +
                                              "; set `shard` to a smaller shape, or a size such as 64M");
  }
  return n;
}

namespace {

// The chunk shape of a virtual dataset's sources: the fastest to read, with the least memory. The sources' dimensions are the
// last ones. Empty if the sources have no chunks, or too large ones.
array::extents chunk_as_sources(const hdf5::external_dependencies& external, const array::extents& dims, std::size_t element) {
  constexpr std::uint64_t max_bytes = 64U << 20;  // bytes
  if (!external.chunked || dims.empty()) return {};
  const array::extents& source = external.chunked->chunk;
  array::extents chunk(dims.size(), 1);
  const std::size_t shared = std::min(source.size(), dims.size());
  for (std::size_t i = 1; i <= shared; ++i)
    chunk[dims.size() - i] = std::min(source[source.size() - i], std::max<std::uint64_t>(1, dims[dims.size() - i]));
  array::extents bytes = chunk;
  bytes.push_back(element);
  return array::product(bytes) <= max_bytes ? chunk : array::extents();
}

}  // namespace

namespace {

constexpr std::uint64_t max_rectilinear_chunks = 1U << 22;  // along a dimension: its readers hold all of them in memory

// The rectilinear grid of a joined array, if its chunks are those of the files.
std::optional<array::chunk_grid> rectilinear_grid(const hdf5::chunk_source& data, const array::chunk_grid& regular) {
  if ((data.layout != H5D_CHUNKED && data.layout != H5D_VIRTUAL) || hdf5::holds_references(data.type)) return {};
  if (const auto axis = data.growing_axis(); axis ? data.dims[*axis] == 0 : array::product(data.dims) == 0) return {};
  auto grid = data.grid_of_parts(regular);
  for (std::size_t d = 0; grid && d < grid->rank(); ++d) {
    if (grid->is_rectilinear(d) && grid->chunks_along(d) > max_rectilinear_chunks) return {};
  }
  return grid;
}

bool keeps_more(const hdf5::chunk_source& data, const array::chunk_grid& grid, const array::chunk_grid& than) {
  return data.reuse_on(grid).reused_elements > data.reuse_on(than).reused_elements;
}

// As the store has it, and so that the chunks of new files are kept.
void choose_append_grid(hdf5::chunk_source& data, const append::existing_array& existing, grid_type requested) {
  array::chunk_grid grid{data.dims, {}};
  grid.chunk.assign(existing.chunk.begin(), existing.chunk.begin() + static_cast<std::ptrdiff_t>(data.dims.size()));
  if (!existing.chunks_along_axis.empty()) {
    if (auto longer = data.grid_of_parts(grid)) grid = std::move(*longer);
  } else if (requested == grid_type::rectilinear) {
    auto rectilinear = rectilinear_grid(data, grid);
    if (rectilinear && keeps_more(data, *rectilinear, grid)) {
      if (array::product(existing.per_shard) > 1)
        throw hdf5::unsupported_dataset(
            reason_code::unsupported_feature,
            "the store has it in shards, whose chunks all have one shape, and so no rectilinear grid; leave out `grid`");
      grid = std::move(*rectilinear);
    }
  }
  array::chunk_grid shards = array::shards_of(grid, existing.per_shard);
  data.use_grid(std::move(grid), std::move(shards), false);
}

}  // namespace

// [length, n] stands for n chunks of this length. A number alone stands for as many as the dimension needs: zarrs takes nothing
// else where they reach over the edge, and Icechunk does not take it.
text::json chunk_shapes_of(const array::chunk_grid& grid, const std::vector<std::uint64_t>& shape,
                           const std::vector<std::uint64_t>& chunk) {
  const auto chunks = [](std::uint64_t length, std::uint64_t n) { return n > 1 ? text::json{length, n} : text::json(length); };
  text::json result = text::json::array();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    text::json lengths = text::json::array();
    if (grid.is_rectilinear(d)) {
      for (const array::chunk_run& run : grid.runs[d]) lengths.push_back(chunks(run.length, run.count));
    } else if (shape[d] > 0 && shape[d] % chunk[d] == 0) {
      lengths.push_back(chunks(chunk[d], shape[d] / chunk[d]));
    } else {
      lengths = chunk[d];
    }
    result.push_back(std::move(lengths));
  }
  return result;
}

std::optional<grid_comparison> compare_grids(const hdf5::chunk_source& data) {
  if (!data.can_reuse_chunks() || data.sharded()) return {};
  const append::existing_array* const existing = in_store(data.object);
  if (existing && !existing->chunks_along_axis.empty()) return {};
  array::chunk_grid regular{data.dims, data.grid.chunk};
  const auto axis = data.growing_axis();
  const array::extents usual = data.chunk_shape();
  for (std::size_t d = 0; d < usual.size(); ++d) {
    if (!axis || d == *axis) regular.chunk[d] = existing ? existing->chunk[d] : usual[d];
  }
  const auto rectilinear = rectilinear_grid(data, regular);
  if (!rectilinear) return {};
  grid_comparison comparison{data.reuse_on(regular), data.reuse_on(*rectilinear)};
  if (comparison.regular.reused_elements == comparison.rectilinear.reused_elements) return {};
  return comparison;
}

void choose_grid(hdf5::chunk_source& data, const convert_options& options) {
  const array::extents& dims = data.dims;
  const std::vector<std::uint64_t>& chunk = options.encoding.chunk;
  array::chunk_grid grid{dims, {}};
  bool rechunked = false;
  if (const append::existing_array* const existing = in_store(data.object))
    return choose_append_grid(data, *existing, options.encoding.grid);
  grid.chunk = data.chunk_shape();
  for (const std::uint64_t c : grid.chunk) {
    if (c == 0) throw hdf5::unsupported_dataset(reason_code::damaged, "a chunk length is 0");
  }
  if (grid.chunk.empty()) {
    const std::size_t element =
        hdf5::holds_references(data.type) ? std::max<std::size_t>(data.type.size, 64) : std::max<std::size_t>(data.type.size, 1);
    grid.chunk = chunk_as_sources(*data.dependencies, dims, element);
    if (!data.object.overrides.new_dimension.empty()) {
      grid.chunk = array::chunk_shape_for(std::span(dims).subspan(1), element);
      grid.chunk.insert(grid.chunk.begin(), 1);
    }
    if (grid.chunk.empty()) grid.chunk = array::chunk_shape_for(dims, element);
  }
  if (!dims.empty() && chunk.size() == dims.size()) {
    array::extents clipped = chunk;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (d == data.growing_axis()) continue;  // more files may follow
      clipped[d] = std::min(clipped[d], std::max<std::uint64_t>(1, dims[d]));
    }
    rechunked = clipped != grid.chunk && chunk != grid.chunk;
    if (chunk == grid.chunk) clipped = grid.chunk;  // as the source has them, beyond the edge
    grid.chunk = std::move(clipped);
  }
  if (!dims.empty() && !options.encoding.chunk_along.empty()) {
    const std::vector<std::string> names = hdf5::dimension_namer(data.file).known_names(data.object, data.dataset, dims.size());
    array::extents requested = grid.chunk;
    use_dimension_chunks(options.encoding.chunk_along, data.object.path, names, dims, requested, data.growing_axis());
    rechunked = rechunked || requested != grid.chunk;
    grid.chunk = std::move(requested);
  }
  if (options.encoding.grid == grid_type::rectilinear && !rechunked) {
    auto rectilinear = rectilinear_grid(data, grid);
    if (rectilinear && keeps_more(data, *rectilinear, grid)) grid = std::move(*rectilinear);
  }
  array::chunk_grid shards =
      array::shards_of(grid, chunks_per_shard(options.encoding.shard.value_or(shard_size{}), grid, data.type.size));
  data.use_grid(std::move(grid), std::move(shards), rechunked);
}

}  // namespace zarrbits::conversion
