// SPDX-License-Identifier: BSL-1.0
#include "convert/plan/grid_request.hpp"

#include "convert/hdf5/chunk_grid.hpp"
#include "convert/text/names.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace zarrbits::conversion {

namespace {

// Its index has 16 bytes for each, and is held in memory.
constexpr std::uint64_t most_per_shard = 1U << 22;

std::uint64_t parse_number(const std::string& option, std::string_view digits, const std::string& text) {
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (digits.empty() || error == std::errc::invalid_argument || end != digits.data() + digits.size()) {
    throw convert_error(option + " is \"" + shown(text) + "\", in which \"" + shown(std::string(digits)) +
                        "\" is no number; give decimal digits, such as 1000");
  }
  if (error == std::errc::result_out_of_range || n > std::uint64_t{1} << 62)
    throw convert_error(option + " is \"" + shown(text) + "\", which is more than there can be");
  return n;
}

}  // namespace

std::uint64_t parse_bytes(const std::string& option, const std::string& text) {
  unsigned shift = 0;
  std::string_view digits = text;
  if (digits.ends_with("iB")) digits.remove_suffix(2);
  if (!digits.empty()) {
    const std::size_t unit = std::string_view("kMGT").find(digits.back() == 'K' ? 'k' : digits.back());
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(unit) + 1);
      digits.remove_suffix(1);
    }
  }
  const std::uint64_t n = parse_number(option, digits, text);
  if (n > (std::uint64_t{1} << 62) >> shift)
    throw convert_error(option + " is \"" + text + "\", which is more than there can be");
  return n << shift;
}

grid_request parse_grid_request(const std::string& option, const std::string& text) {
  grid_request wanted;
  if (text.empty()) return wanted;
  if (text.find(',') == std::string::npos) {
    wanted.bytes = parse_bytes(option, text);
    if (wanted.bytes == 0) throw convert_error(option + " is 0 bytes; give a size such as 64M, or a shape such as 1000,1000");
    return wanted;
  }
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view extent = rest.substr(0, rest.find(','));
    wanted.shape.push_back(parse_number(option, extent, text));
    if (wanted.shape.back() == 0) throw convert_error(option + " is \"" + text + "\"; extents are at least 1");
    rest.remove_prefix(std::min(rest.size(), extent.size() + 1));
  }
  if (wanted.shape.size() > H5S_MAX_RANK)
    throw convert_error(option + " has more than " + std::to_string(H5S_MAX_RANK) + " dimensions, which no dataset has");
  return wanted;
}

std::vector<hsize_t> chunks_per_shard(const grid_request& wanted, const chunk_grid& grid, std::uint64_t element_size) {
  std::vector<hsize_t> n(grid.rank(), 1);
  if (grid.chunks() <= 1) return n;
  if (wanted.bytes > 0) {
    const std::uint64_t chunk = product(std::vector<hsize_t>{grid.chunk_elements(), std::max<std::uint64_t>(1, element_size)});
    std::vector<hsize_t> along;
    for (std::size_t d = 0; d < grid.rank(); ++d) along.push_back(grid.along(d));
    const std::uint64_t room = std::min(wanted.bytes / chunk, most_per_shard);
    return chunk_shape_for(along, 1, room);
  }
  if (wanted.shape.size() != grid.rank()) return n;
  for (std::size_t d = 0; d < n.size(); ++d) n[d] = wanted.shape[d] / grid.chunk[d] + (wanted.shape[d] % grid.chunk[d] != 0);
  if (product(n) > most_per_shard) {
    throw convert_error("a shard would have " + std::to_string(product(n)) + " chunks, whose index alone has " +
                        human_bytes(product(n) * 16) + "; give --shard a smaller shape, or a size such as 64M");
  }
  return n;
}

void choose_grid(source_dataset& data, const grid_request& chunk, const grid_request& shard) {
  const std::vector<hsize_t>& dims = data.dims;
  chunk_grid grid{dims, {}};
  bool rechunked = false;
  if (data.layout == H5D_CHUNKED) {
    grid.chunk.resize(dims.size());
    if (H5Pget_chunk(data.dcpl, static_cast<int>(dims.size()), grid.chunk.data()) != static_cast<int>(dims.size())) {
      throw skip_dataset("the chunk shape does not fit the dataspace");
    }
    for (const hsize_t c : grid.chunk) {
      if (c == 0) throw skip_dataset("a chunk length is 0");
    }
  } else {
    const std::size_t element =
        holds_references(data.type) ? std::max<std::size_t>(data.type.size, 64) : std::max<std::size_t>(data.type.size, 1);
    grid.chunk = chunk_shape_for(dims, element);
  }
  if (!dims.empty() && chunk.shape.size() == dims.size()) {
    std::vector<hsize_t> asked = chunk.shape;
    for (std::size_t d = 0; d < dims.size(); ++d) asked[d] = std::min(asked[d], std::max<hsize_t>(1, dims[d]));
    rechunked = asked != grid.chunk && chunk.shape != grid.chunk;
    if (chunk.shape == grid.chunk) asked = grid.chunk;  // as the source has them, over the edge
    grid.chunk = std::move(asked);
  }
  chunk_grid shards = shards_of(grid, chunks_per_shard(shard, grid, data.type.size));
  data.use_grid(std::move(grid), std::move(shards), rechunked);
}

}  // namespace zarrbits::conversion
