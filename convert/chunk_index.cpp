// SPDX-License-Identifier: BSL-1.0
//
// H5Dget_chunk_info costs time that grows with the number of chunks *each call* (hours for 262,144 chunks), and libhdf5 1.10.8 has no
// H5Dchunk_iter. H5Dget_chunk_storage_size looks one chunk up in the index: walking the whole grid with it is linear. It is also
// right where the functions that list chunks are not: for extensible-array indexes whose unlimited dimension is not the first,
// they report wrong coordinates. Only grids that are nearly empty and far too large to walk are listed.
//
#include "convert/chunk_index.hpp"

#include <algorithm>
#include <limits>

namespace zarrbits::conversion {

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t walk_limit = 1 << 22;      // chunks; a walk of these takes seconds
constexpr std::uint64_t walk_per_stored = 64;      // or so many for each that is stored
constexpr std::uint64_t list_limit = 20000;        // listing is quadratic

}  // namespace

std::uint64_t product(std::span<const hsize_t> numbers) {
  std::uint64_t p = 1;
  for (const hsize_t n : numbers) {
    if (n == 0) return 0;
  }
  for (const hsize_t n : numbers) {
    if (p > most / n) return most;
    p *= n;
  }
  return p;
}

std::uint64_t chunk_grid::chunks() const {
  std::vector<hsize_t> n(rank());
  for (std::size_t d = 0; d < rank(); ++d) n[d] = along(d);
  return product(n);
}

std::uint64_t chunk_grid::chunk_elements() const { return product(chunk); }

std::vector<hsize_t> chunk_grid::start(std::span<const hsize_t> at) const {
  std::vector<hsize_t> s(rank());
  for (std::size_t d = 0; d < rank(); ++d) s[d] = at[d] * chunk[d];
  return s;
}

std::vector<hsize_t> chunk_grid::inside(std::span<const hsize_t> at) const {
  std::vector<hsize_t> n(rank());
  for (std::size_t d = 0; d < rank(); ++d) n[d] = std::min(chunk[d], shape[d] - at[d] * chunk[d]);
  return n;
}

bool chunk_grid::partial(std::span<const hsize_t> at) const {
  for (std::size_t d = 0; d < rank(); ++d) {
    if (shape[d] - at[d] * chunk[d] < chunk[d]) return true;
  }
  return false;
}

bool chunk_grid::next(std::vector<hsize_t>& at) const {
  for (std::size_t d = rank(); d-- > 0;) {
    if (++at[d] < along(d)) return true;
    at[d] = 0;
  }
  return false;
}

void for_each_stored_chunk(hid_t dataset, const chunk_grid& grid,
                           const std::function<void(const std::vector<hsize_t>&, hsize_t)>& visit) {
  const std::uint64_t all = grid.chunks();
  if (all == 0) return;
  std::vector<hsize_t> at(grid.rank(), 0);
  const auto look_up = [&](const std::vector<hsize_t>& where) {
    const std::vector<hsize_t> first = grid.start(where);
    hsize_t size = 0;
    // a negative status says "never written", and nothing else that a caller could tell apart
    if (H5Dget_chunk_storage_size(dataset, first.data(), &size) < 0) size = 0;
    return size;
  };
  if (all <= walk_limit) {
    do {
      if (const hsize_t size = look_up(at)) visit(at, size);
    } while (grid.next(at));
    H5Eclear2(H5E_DEFAULT);
    return;
  }
  const h5::handle space(H5Dget_space(dataset), "tell the dataspace");
  hsize_t stored = 0;
  h5::check(H5Dget_num_chunks(dataset, space, &stored), "count the chunks");
  if (stored == 0) return;
  if (all / walk_per_stored <= stored) {
    do {
      if (const hsize_t size = look_up(at)) visit(at, size);
    } while (grid.next(at));
    H5Eclear2(H5E_DEFAULT);
    return;
  }
  if (stored > list_limit) {
    throw h5::failure(std::to_string(stored) + " chunks in a grid of " + std::to_string(all) + ": too sparse to be walked, too many to be listed");
  }
  std::uint64_t inside = 0;
  for (hsize_t i = 0; i < stored; ++i) {
    std::vector<hsize_t> first(grid.rank());
    unsigned mask = 0;
    haddr_t address = 0;
    hsize_t size = 0;
    h5::check(H5Dget_chunk_info(dataset, space, i, first.data(), &mask, &address, &size), "list the chunks");
    bool within = true;
    for (std::size_t d = 0; d < grid.rank(); ++d) {
      within = within && first[d] < grid.shape[d];
      at[d] = first[d] / grid.chunk[d];
    }
    if (!within) continue;  // left behind when the dataset was shrunk
    if (look_up(at) != size) throw h5::failure("libhdf5 lists chunks at wrong coordinates, and the grid is too large to be walked");
    ++inside;
    visit(at, size);
  }
  H5Eclear2(H5E_DEFAULT);
}

}  // namespace zarrbits::conversion
