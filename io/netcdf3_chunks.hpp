// SPDX-License-Identifier: BSL-1.0
//
// How the values of a netCDF-3 variable are divided into chunks, and which bytes of the file each chunk has.
//
#ifndef ZARRBITS_IO_NETCDF3_CHUNKS_HPP
#define ZARRBITS_IO_NETCDF3_CHUNKS_HPP

#include "io/netcdf3_header.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zarrbits::io {

// Rows of equal size, which follow each other in the chunk.
struct netcdf3_rows {
  std::uint64_t offset = 0;       // of the first row in the file
  std::uint64_t count = 0;        // rows in the file
  std::uint64_t bytes = 0;        // of a row
  std::uint64_t stride = 0;       // from one row to the next in the file
  std::uint64_t chunk_bytes = 0;  // with the rows beyond the edge of the array, which the file does not have

  // Whether the file has the chunk as one range of bytes.
  bool is_range() const noexcept { return count * bytes == chunk_bytes && (count == 1 || stride == bytes); }
};

// A regular grid of chunks: 1 along the dimensions before `axis`, a part of `axis`, everything along those behind it. So a chunk
// is one range of bytes in the file, except if it has several records, or rows beyond the edge of the array.
class netcdf3_chunks {
 public:
  netcdf3_chunks(const netcdf3_variable& variable, std::uint64_t record_stride);

  const std::vector<std::uint64_t>& chunk_shape() const noexcept { return chunk_; }
  // Number of chunks in each dimension.
  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  netcdf3_rows rows_of(const std::vector<std::uint64_t>& chunk) const;

 private:
  std::vector<std::uint64_t> shape_, chunk_, counts_;
  std::vector<std::uint64_t> strides_;  // bytes in the file from one index of a dimension to the next
  std::size_t axis_ = 0;
  std::uint64_t begin_ = 0, row_bytes_ = 0;
};

}  // namespace zarrbits::io

#endif
