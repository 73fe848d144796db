// SPDX-License-Identifier: BSL-1.0
//
// H5Dget_chunk_info costs time that grows with the number of chunks *each call* (hours for 262,144 chunks), and libhdf5 1.10.8
// has no H5Dchunk_iter. H5Dget_chunk_storage_size looks one chunk up in the index: walking the whole grid with it is linear. It
// also works where the functions that list chunks fail: they report wrong coordinates for extensible-array indexes whose
// unlimited dimension is not the first. Only grids that are nearly empty and far too large to walk are listed.
//
#include "hdf5/chunk_index.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace zarrbits::hdf5 {

namespace {

constexpr std::uint64_t saturated = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t walk_limit = 1 << 22;  // chunks; walking this many takes seconds
constexpr std::uint64_t walk_per_stored = 64;  // or this many for each stored chunk
constexpr std::uint64_t list_limit = 20000;    // listing takes quadratic time

}  // namespace

bool can_be_walked(const array::chunk_grid& grid, hid_t dataset) {
  const std::uint64_t total = grid.chunks();
  if (total <= walk_limit) return true;
  const handle space(H5Dget_space(dataset), "get the dataspace");
  hsize_t stored = 0;
  if (H5Pget_layout(handle(H5Dget_create_plist(dataset), "get the properties")) != H5D_CHUNKED) return total < saturated;
  check(H5Dget_num_chunks(dataset, space, &stored), "count the chunks");
  return total / walk_per_stored <= stored;
}

std::uint64_t stored_size(hid_t dataset, const array::extents& first) {
  hsize_t size = 0;
  if (H5Dget_chunk_storage_size(dataset, to_hsize(first).data(), &size) >= 0) return size;
  // libhdf5 fails in the same way if the index is damaged; only its message differs
  const text::coded_reason reason = last_reason();
  // the second is said of a chunk with filters that libhdf5 has in its cache, because its fill values were read
  for (const char* unwritten : {"chunk storage is not allocated", "chunk address isn't defined"}) {
    if (reason.sentence.find(unwritten) != std::string::npos) return 0;
  }
  throw failure("cannot look up a chunk: " + reason.sentence, reason.code);
}

namespace {

void list_stored_chunks(hid_t dataset, const array::chunk_grid& grid, const array::chunk_grid& shards,
                        const std::function<bool(const array::extents&, std::uint64_t)>& visit) {
  const handle space(H5Dget_space(dataset), "get the dataspace");
  hsize_t stored = 0;
  check(H5Dget_num_chunks(dataset, space, &stored), "count the chunks");
  if (stored > list_limit) {
    throw failure(std::to_string(stored) + " chunks in a grid of " + std::to_string(grid.chunks()) +
                      ": too sparse to walk, too many to list",
                  reason_code::too_large);
  }
  struct listed_chunk {
    array::extents shard, index;
    std::uint64_t size;
  };
  std::vector<listed_chunk> chunks;
  for (std::uint64_t i = 0; i < stored; ++i) {
    std::vector<hsize_t> first(grid.rank());
    array::extents index(grid.rank());
    unsigned mask = 0;
    haddr_t address = 0;
    hsize_t size = 0;
    check(H5Dget_chunk_info(dataset, space, i, first.data(), &mask, &address, &size), "list the chunks");
    bool is_inside = true;
    for (std::size_t d = 0; d < grid.rank(); ++d) {
      is_inside = is_inside && first[d] < grid.shape[d];
      index[d] = first[d] / grid.chunk[d];
    }
    if (!is_inside) continue;  // left over from when the dataset was shrunk
    if (stored_size(dataset, grid.start(index)) != size) {
      throw failure("libhdf5 lists chunks at wrong coordinates, and the grid is too large to walk");
    }
    array::extents shard = shards.chunk_of(index);
    chunks.push_back({std::move(shard), std::move(index), size});
  }
  std::sort(chunks.begin(), chunks.end(),
            [](const listed_chunk& a, const listed_chunk& b) { return std::tie(a.shard, a.index) < std::tie(b.shard, b.index); });
  for (const listed_chunk& c : chunks) {
    if (!visit(c.index, c.size)) return;
  }
}

}  // namespace

void for_each_stored_chunk(hid_t dataset, const array::chunk_grid& grid, const array::chunk_grid& shards, std::uint64_t first,
                           std::uint64_t count, const std::function<bool(const array::extents&, std::uint64_t)>& visit) {
  if (count == 0) return;
  // callers ask for parts only if the grid can be walked: checking each time would count all chunks each time
  if (count == shards.chunks() && !can_be_walked(grid, dataset)) {
    list_stored_chunks(dataset, grid, shards, visit);
  } else {
    array::for_each_chunk(shards, first, count, [&](const array::extents& index) {
      const std::uint64_t size = stored_size(dataset, grid.start(index));
      return size == 0 || visit(index, size);
    });
  }
  H5Eclear2(H5E_DEFAULT);
}

void for_each_stored_chunk(hid_t dataset, const array::chunk_grid& grid,
                           const std::function<void(const array::extents&, std::uint64_t)>& visit) {
  const array::chunk_grid shards = array::shards_of(grid);
  for_each_stored_chunk(dataset, grid, shards, 0, shards.chunks(), [&](const array::extents& index, std::uint64_t size) {
    visit(index, size);
    return true;
  });
}

}  // namespace zarrbits::hdf5
