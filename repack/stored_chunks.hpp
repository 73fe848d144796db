// SPDX-License-Identifier: BSL-1.0
//
// The chunks of a dataset as they lie in its file.
//
//   const stored_chunks chunks(file, dataset);
//   chunks.for_each([&](const array::extents& index, std::uint64_t) {
//     const located_chunk place = chunks.locate(index);   // the caller holds hdf5::lock, or is alone
//     const compressors::buffer bytes = chunks.read(place);   // in any thread
//   });
//
#ifndef ZARRBITS_REPACK_STORED_CHUNKS_HPP
#define ZARRBITS_REPACK_STORED_CHUNKS_HPP

#include "array/chunk_grid.hpp"
#include "hdf5/filters.hpp"
#include "hdf5/source_file.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace zarrbits::repacking {

struct located_chunk {
  std::optional<std::uint64_t> offset = {};  // in the file; not set: `bytes` has the chunk
  std::uint64_t size = 0;                    // 0: the chunk was never written
  unsigned mask = 0;                         // of the filters that were left out
  compressors::buffer bytes = {};
};

class stored_chunks {
 public:
  // `dataset`: chunked, with dimensions. The references live as long as this. Throws hdf5::failure.
  stored_chunks(const hdf5::source_file& file, hid_t dataset);

  const array::chunk_grid& grid() const noexcept { return grid_; }
  // Calls `visit` with each chunk within the dataset's extent that was ever written, in C order, and its size. The caller holds
  // lock, or is alone. Throws hdf5::failure.
  void for_each(const std::function<void(const array::extents& index, std::uint64_t size)>& visit) const;
  // Called as for_each(). Throws hdf5::failure.
  located_chunk locate(const array::extents& index) const;
  // Throws io::read_error, zarrbits::error.
  compressors::buffer read(located_chunk place) const;

 private:
  const hdf5::source_file& file_;
  const hid_t dataset_;
  array::chunk_grid grid_;
};

}  // namespace zarrbits::repacking

#endif
