// SPDX-License-Identifier: BSL-1.0
#include "convert/plan/grid_request.hpp"

#include "convert/concat/joined_parts.hpp"
#include "hdf5/chunk_grid.hpp"
#include "hdf5/other_files.hpp"
#include "text/words.hpp"

#include <zarrbits/convert.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace zarrbits::conversion {

namespace {

// The shard's index has 16 bytes per chunk, and is held in memory.
constexpr std::uint64_t most_per_shard = 1U << 22;

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

std::vector<hsize_t> chunks_per_shard(const shard_size& wanted, const hdf5::chunk_grid& grid, std::uint64_t element_size) {
  std::vector<hsize_t> n(grid.rank(), 1);
  if (grid.chunks() <= 1) return n;
  if (wanted.bytes > 0) {
    const std::uint64_t chunk = hdf5::product(std::vector<hsize_t>{grid.chunk_elements(), std::max<std::uint64_t>(1, element_size)});
    std::vector<hsize_t> along;
    for (std::size_t d = 0; d < grid.rank(); ++d) along.push_back(grid.along(d));
    const std::uint64_t room = std::min(wanted.bytes / chunk, most_per_shard);
    return hdf5::chunk_shape_for(along, 1, room);
  }
  if (wanted.shape.size() != grid.rank()) return n;
  for (std::size_t d = 0; d < n.size(); ++d) n[d] = wanted.shape[d] / grid.chunk[d] + (wanted.shape[d] % grid.chunk[d] != 0);
  if (hdf5::product(n) > most_per_shard) {
    throw zarrbits::error(errc::no_match, "a shard would have " + std::to_string(hdf5::product(n)) + " chunks, whose index alone has " +
                                              text::human_bytes(hdf5::product(n) * 16) +
                                              "; set `shard` to a smaller shape, or a size such as 64M");
  }
  return n;
}

namespace {

// The chunk shape of a virtual dataset's sources: the fastest to read, with the least memory. The sources' dimensions are the
// last ones. Empty if the sources have no chunks, or too large ones.
std::vector<hsize_t> chunk_as_sources(const hdf5::beside& other, const std::vector<hsize_t>& dims, std::size_t element) {
  constexpr std::uint64_t most = 64U << 20;  // bytes
  if (!other.chunked || dims.empty()) return {};
  const std::vector<hsize_t>& source = other.chunked->chunk;
  std::vector<hsize_t> chunk(dims.size(), 1);
  const std::size_t shared = std::min(source.size(), dims.size());
  for (std::size_t i = 1; i <= shared; ++i)
    chunk[dims.size() - i] = std::min(source[source.size() - i], std::max<hsize_t>(1, dims[dims.size() - i]));
  std::vector<hsize_t> bytes = chunk;
  bytes.push_back(element);
  return hdf5::product(bytes) <= most ? chunk : std::vector<hsize_t>();
}

}  // namespace

namespace {

constexpr hsize_t most_cut_chunks = 1U << 22;  // along the axis: its readers hold all of them in memory

// The rectilinear grid of a joined array, if its chunks are those of the files.
std::optional<hdf5::chunk_grid> rectilinear_grid(const hdf5::chunk_source& data, const hdf5::chunk_grid& regular) {
  const auto axis = data.growing_axis();
  if (!axis || data.layout != H5D_CHUNKED || hdf5::holds_references(data.type) || data.dims[*axis] == 0) return {};
  auto grid = data.grid_of_parts(regular);
  return grid && grid->along(*axis) <= most_cut_chunks ? std::move(grid) : std::nullopt;
}

bool keeps_more(const hdf5::chunk_source& data, const hdf5::chunk_grid& grid, const hdf5::chunk_grid& than) {
  return data.kept_on(grid).kept_elements > data.kept_on(than).kept_elements;
}

// As the store has it, and so that the chunks of new files are kept.
void choose_grown_grid(hdf5::chunk_source& data, const append::stored_values& before, grid_type wanted) {
  hdf5::chunk_grid grid{data.dims, {}};
  grid.chunk.assign(before.chunk.begin(), before.chunk.begin() + static_cast<std::ptrdiff_t>(data.dims.size()));
  if (!before.chunks_along_axis.empty()) {
    if (auto longer = data.grid_of_parts(grid)) grid = std::move(*longer);
  } else if (wanted == grid_type::rectilinear) {
    auto other = rectilinear_grid(data, grid);
    if (other && keeps_more(data, *other, grid)) {
      if (hdf5::product(before.per_shard) > 1)
        throw hdf5::skip_dataset(
            "the store has it in shards, whose chunks all have one shape, and so no rectilinear grid; leave out `grid`");
      grid = std::move(*other);
    }
  }
  hdf5::chunk_grid shards = hdf5::shards_of(grid, before.per_shard);
  data.use_grid(std::move(grid), std::move(shards), false);
}

}  // namespace

// [length, n] stands for n chunks of this length. A number alone stands for as many as the dimension needs: zarrs takes nothing
// else where they reach over the edge, and Icechunk does not take it.
text::json chunk_shapes_of(const hdf5::chunk_grid& grid, const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& chunk) {
  const auto chunks = [](std::uint64_t length, std::uint64_t n) { return n > 1 ? text::json{length, n} : text::json(length); };
  text::json all = text::json::array();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    text::json along = text::json::array();
    if (d == grid.axis) {
      for (const hdf5::chunk_run& run : grid.runs) along.push_back(chunks(run.length, run.count));
    } else if (shape[d] > 0 && shape[d] % chunk[d] == 0) {
      along.push_back(chunks(chunk[d], shape[d] / chunk[d]));
    } else {
      along = chunk[d];
    }
    all.push_back(std::move(along));
  }
  return all;
}

std::optional<grid_comparison> compare_grids(const hdf5::chunk_source& data) {
  if (!data.keeps_chunks() || data.sharded()) return {};
  const auto axis = data.growing_axis();
  const append::stored_values* const before = in_store(data.object);
  if (!axis || (before && !before->chunks_along_axis.empty())) return {};
  hdf5::chunk_grid regular{data.dims, data.grid.chunk};
  if (before) regular.chunk[*axis] = before->chunk[*axis];
  else if (const auto usual = data.chunk_shape(); !usual.empty()) regular.chunk[*axis] = usual[*axis];
  const auto other = rectilinear_grid(data, regular);
  if (!other) return {};
  grid_comparison both{data.kept_on(regular), data.kept_on(*other)};
  if (both.regular.kept_elements == both.rectilinear.kept_elements) return {};
  for (std::size_t d = 0; d < regular.rank(); ++d) {
    if (d == *axis) continue;
    for (hdf5::chunks_kept* kept : {&both.regular, &both.rectilinear}) {
      kept->chunks = hdf5::product(std::vector<hsize_t>{kept->chunks, regular.along(d)});
      kept->kept = hdf5::product(std::vector<hsize_t>{kept->kept, regular.along(d)});
      kept->kept_elements = hdf5::product(std::vector<hsize_t>{kept->kept_elements, regular.shape[d]});
    }
  }
  return both;
}

void choose_grid(hdf5::chunk_source& data, const convert_options& options) {
  const std::vector<hsize_t>& dims = data.dims;
  const std::vector<std::uint64_t>& chunk = options.chunk;
  hdf5::chunk_grid grid{dims, {}};
  bool rechunked = false;
  if (const append::stored_values* const before = in_store(data.object)) return choose_grown_grid(data, *before, options.grid);
  grid.chunk = data.chunk_shape();
  for (const hsize_t c : grid.chunk) {
    if (c == 0) throw hdf5::skip_dataset("a chunk length is 0");
  }
  if (grid.chunk.empty()) {
    const std::size_t element =
        hdf5::holds_references(data.type) ? std::max<std::size_t>(data.type.size, 64) : std::max<std::size_t>(data.type.size, 1);
    grid.chunk = chunk_as_sources(*data.beside, dims, element);
    if (!data.object.arranged.new_dimension.empty()) {
      grid.chunk = hdf5::chunk_shape_for(std::span(dims).subspan(1), element);
      grid.chunk.insert(grid.chunk.begin(), 1);
    }
    if (grid.chunk.empty()) grid.chunk = hdf5::chunk_shape_for(dims, element);
  }
  if (!dims.empty() && chunk.size() == dims.size()) {
    const std::vector<hsize_t> whole(chunk.begin(), chunk.end());
    std::vector<hsize_t> asked = whole;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (d == data.growing_axis()) continue;  // more files may follow
      asked[d] = std::min(asked[d], std::max<hsize_t>(1, dims[d]));
    }
    rechunked = asked != grid.chunk && whole != grid.chunk;
    if (whole == grid.chunk) asked = grid.chunk;  // as the source has them, beyond the edge
    grid.chunk = std::move(asked);
  }
  if (options.grid == grid_type::rectilinear && !rechunked) {
    auto other = rectilinear_grid(data, grid);
    if (other && keeps_more(data, *other, grid)) grid = std::move(*other);
  }
  hdf5::chunk_grid shards = hdf5::shards_of(grid, chunks_per_shard(options.shard, grid, data.type.size));
  data.use_grid(std::move(grid), std::move(shards), rechunked);
}

}  // namespace zarrbits::conversion
