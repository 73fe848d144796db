// SPDX-License-Identifier: BSL-1.0
#include "remote/netcdf3_rows.hpp"

#include "remote/remote_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace zarrbits::remote {

namespace {

void read_range(const io::byte_source& file, const io::netcdf3_rows& rows, std::uint64_t offset, std::span<std::byte> out) {
  const std::uint64_t in_file = rows.count * rows.bytes;
  const auto present = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), in_file - std::min(offset, in_file)));
  if (present > 0) file.read(rows.offset + offset, out.first(present));
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(present), out.end(), std::byte{0});
}

// Calls `visit` with the place in the file, and in `out`, of each part of a row.
template <class F>
void for_each_row(const io::netcdf3_rows& rows, std::uint64_t offset, std::span<std::byte> out, const F& visit) {
  while (!out.empty()) {
    const std::uint64_t row = offset / rows.bytes, inside = offset % rows.bytes;
    if (row >= rows.count) return;
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), rows.bytes - inside));
    visit(rows.offset + row * rows.stride + inside, out.first(n));
    out = out.subspan(n);
    offset += n;
  }
}

// Several requests at a time.
void read_remote_rows(const remote_file& remote, const io::netcdf3_rows& rows, std::uint64_t offset, std::span<std::byte> out) {
  std::vector<io::byte_range> ranges;
  for_each_row(rows, offset, out, [&](std::uint64_t begin, std::span<std::byte> row) { ranges.push_back({begin, row.size()}); });
  const auto pending = remote.fetch(std::move(ranges));
  std::fill(out.begin(), out.end(), std::byte{0});
  for_each_row(rows, offset, out, [&](std::uint64_t begin, std::span<std::byte> row) {
    const auto bytes = pending->bytes({begin, row.size()});
    std::memcpy(row.data(), bytes.data(), bytes.size());
  });
}

// Rows that are close to each other are read together.
void read_rows_apart(const io::byte_source& file, const io::netcdf3_rows& rows, std::uint64_t offset, std::span<std::byte> out) {
  constexpr std::uint64_t window_bytes = 256U << 10;
  const std::uint64_t rows_in_window = std::max<std::uint64_t>(window_bytes / rows.stride, 1);
  std::vector<std::byte> window;
  std::uint64_t window_first = 0, window_end = 0;  // rows
  while (!out.empty()) {
    const std::uint64_t row = offset / rows.bytes, inside = offset % rows.bytes;
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), rows.bytes - inside));
    if (row >= rows.count) {
      std::fill(out.begin(), out.end(), std::byte{0});
      return;
    }
    if (row < window_first || row >= window_end) {
      window_first = row;
      window_end = std::min({row + rows_in_window, rows.count, (offset + out.size() - 1) / rows.bytes + 1});
      window.resize(static_cast<std::size_t>((window_end - row - 1) * rows.stride + rows.bytes));
      file.read(rows.offset + row * rows.stride, window);
    }
    std::memcpy(out.data(), window.data() + (row - window_first) * rows.stride + inside, n);
    out = out.subspan(n);
    offset += n;
  }
}

}  // namespace

bool are_read_alone(const io::byte_source& file, const io::netcdf3_rows& rows, std::uint64_t cache) {
  return file.remote() && file.state().size > cache && !is_small_gap(rows.stride - rows.bytes);
}

void read_rows(const io::byte_source& file, const io::netcdf3_rows& rows, std::uint64_t cache, std::uint64_t offset,
               std::span<std::byte> out) {
  if (rows.stride == rows.bytes) read_range(file, rows, offset, out);
  else if (are_read_alone(file, rows, cache)) read_remote_rows(*file.remote(), rows, offset, out);
  else read_rows_apart(file, rows, offset, out);
}

}  // namespace zarrbits::remote
