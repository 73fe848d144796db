// SPDX-License-Identifier: BSL-1.0
#include "verify/compare_hdf5_chunks.hpp"

#include "hdf5/chunk_index.hpp"
#include "hdf5/file_bytes.hpp"
#include "hdf5/h5.hpp"
#include "verify/source_values.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

namespace zarrbits::verification {

namespace {

struct stored_filter {
  H5Z_filter_t id = 0;
  std::vector<unsigned> values;

  bool operator==(const stored_filter&) const = default;
};

std::vector<stored_filter> filters_of(hid_t properties) {
  std::vector<stored_filter> filters;
  const int n = H5Pget_nfilters(properties);
  if (n < 0) throw source_error("cannot read the filters: " + hdf5_reason());
  for (unsigned i = 0; i < static_cast<unsigned>(n); ++i) {
    stored_filter f;
    unsigned flags = 0;
    std::size_t count = 0;
    f.id = H5Pget_filter2(properties, i, &flags, &count, nullptr, 0, nullptr, nullptr);
    f.values.resize(count);
    if (f.id < 0 || (count > 0 && H5Pget_filter2(properties, i, &flags, &count, f.values.data(), 0, nullptr, nullptr) < 0))
      throw source_error("cannot read the filters: " + hdf5_reason());
    filters.push_back(std::move(f));
  }
  return filters;
}

std::uint64_t count_stored(hid_t dataset, const array::chunk_grid& grid) {
  std::uint64_t n = 0;
  hdf5::for_each_stored_chunk(dataset, grid, [&](const std::vector<std::uint64_t>&, std::uint64_t) { ++n; });
  return n;
}

bool has_equal_bytes(const hdf5::file_bytes& first, const hdf5::chunk_locator::range& a, const hdf5::file_bytes& second,
                     const hdf5::chunk_locator::range& b) {
  constexpr std::uint64_t piece = 1 << 20;
  first.require_range(a.offset, a.size);
  second.require_range(b.offset, b.size);
  std::vector<std::byte> bytes, other_bytes;
  for (std::uint64_t done = 0; done < a.size; done += piece) {
    bytes.resize(static_cast<std::size_t>(std::min(piece, a.size - done)));
    other_bytes.resize(bytes.size());
    first.read(a.offset + done, bytes);
    second.read(b.offset + done, other_bytes);
    if (bytes != other_bytes) return false;
  }
  return true;
}

}  // namespace

bool has_same_stored_chunks(const chunked_dataset& first, const chunked_dataset& second, const std::vector<std::uint64_t>& dims) {
  const std::vector<std::uint64_t> chunk = hdf5::chunk_extent(first.properties);
  unsigned options = 0, other_options = 0;
  if (chunk.size() != dims.size() || chunk != hdf5::chunk_extent(second.properties) ||
      filters_of(first.properties) != filters_of(second.properties) || H5Pget_chunk_opts(first.properties, &options) < 0 ||
      H5Pget_chunk_opts(second.properties, &other_options) < 0 || options != other_options)
    return false;
  const array::chunk_grid grid{dims, chunk}, each_chunk = array::shards_of(grid);
  const hdf5::file_bytes bytes(first.file.chunks()), other_bytes(second.file.chunks());
  std::uint64_t n = 0;
  bool is_equal = true;
  hdf5::for_each_stored_chunk(first.id, grid, each_chunk, 0, each_chunk.chunks(),
                              [&](const std::vector<std::uint64_t>& index, std::uint64_t) {
    const std::vector<std::uint64_t> start = grid.start(index);
    unsigned mask = 0, other_mask = 0;
    const auto a = first.file.chunks().find(first.id, start, mask);
    const auto b = second.file.chunks().find(second.id, start, other_mask);
    is_equal = a && b && mask == other_mask && a->size == b->size && has_equal_bytes(bytes, *a, other_bytes, *b);
    ++n;
    return is_equal;
  });
  return is_equal && n == count_stored(second.id, grid);
}

}  // namespace zarrbits::verification
