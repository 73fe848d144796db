// SPDX-License-Identifier: BSL-1.0
#include "io/netcdf3_chunks.hpp"

#include <algorithm>

namespace zarrbits::io {

namespace {

constexpr std::uint64_t max_chunk_bytes = 16U << 20, min_chunk_bytes = 4U << 20;
// Smaller parts of a record are gathered from several records, into chunks of this size.
constexpr std::uint64_t small_record_bytes = 64U << 10, gathered_bytes = 1U << 20;

// Rows in a chunk: a divisor of their number, so that each chunk is full, if one makes chunks of a good size.
std::uint64_t rows_in_chunk(std::uint64_t rows, std::uint64_t row_bytes, std::uint64_t min_bytes, std::uint64_t max_bytes) {
  const std::uint64_t max_rows = std::max<std::uint64_t>(max_bytes / row_bytes, 1);
  if (rows <= max_rows) return std::max<std::uint64_t>(rows, 1);
  const std::uint64_t min_rows = std::clamp<std::uint64_t>(min_bytes / row_bytes, 1, max_rows);
  for (std::uint64_t n = max_rows; n >= min_rows; --n) {
    if (rows % n == 0) return n;
  }
  return max_rows;
}

}  // namespace

netcdf3_chunks::netcdf3_chunks(const netcdf3_variable& variable, std::uint64_t record_stride)
    : shape_(variable.shape), begin_(variable.begin) {
  const std::size_t rank = shape_.size();
  strides_.resize(rank);
  std::vector<std::uint64_t> inner(rank);  // bytes of one index of a dimension
  std::uint64_t bytes = size_of(variable.type);
  for (std::size_t d = rank; d-- > 0;) {
    inner[d] = bytes;
    bytes *= std::max<std::uint64_t>(shape_[d], d == 0 ? 1 : 0);
  }
  strides_ = inner;
  if (variable.is_record) strides_[0] = record_stride;
  chunk_.assign(rank, 1);
  row_bytes_ = rank == 0 ? bytes : inner[0];
  if (rank == 0) return;
  while (axis_ + 1 < rank && inner[axis_] > max_chunk_bytes) ++axis_;
  row_bytes_ = inner[axis_];
  const bool is_interleaved = axis_ == 0 && strides_[0] != row_bytes_;
  if (!is_interleaved) chunk_[axis_] = rows_in_chunk(shape_[axis_], row_bytes_, min_chunk_bytes, max_chunk_bytes);
  else if (row_bytes_ < small_record_bytes)
    chunk_[axis_] = rows_in_chunk(shape_[axis_], row_bytes_, gathered_bytes / 2, gathered_bytes);
  for (std::size_t d = axis_ + 1; d < rank; ++d) chunk_[d] = shape_[d];
  for (std::size_t d = 0; d < rank; ++d) counts_.push_back(shape_[d] / chunk_[d] + (shape_[d] % chunk_[d] != 0));
}

netcdf3_rows netcdf3_chunks::rows_of(const std::vector<std::uint64_t>& chunk) const {
  netcdf3_rows rows{.offset = begin_, .count = 1, .bytes = row_bytes_, .stride = row_bytes_, .chunk_bytes = row_bytes_};
  if (shape_.empty()) return rows;
  for (std::size_t d = 0; d <= axis_; ++d) rows.offset += chunk[d] * chunk_[d] * strides_[d];
  rows.count = std::min(chunk_[axis_], shape_[axis_] - chunk[axis_] * chunk_[axis_]);
  rows.stride = strides_[axis_];
  rows.chunk_bytes = chunk_[axis_] * row_bytes_;
  return rows;
}

}  // namespace zarrbits::io
