// SPDX-License-Identifier: BSL-1.0
//
// The bytes of an open HDF5 file, for reads without libhdf5 and its lock.
//
#ifndef ZARRBITS_HDF5_FILE_BYTES_HPP
#define ZARRBITS_HDF5_FILE_BYTES_HPP

#include "hdf5/chunk_locator.hpp"

#include <cstdint>

namespace zarrbits::conversion {

class file_bytes {
 public:
  // For an open file of chunk_locator's driver; for any other file there are no bytes.
  explicit file_bytes(chunk_locator chunks) noexcept;
  ~file_bytes();
  file_bytes(const file_bytes&) = delete;
  file_bytes& operator=(const file_bytes&) = delete;

  // Negative if the bytes cannot be read this way, as in S3.
  int descriptor() const noexcept { return descriptor_; }
  // Throws unreadable_range if the file was shorter when it was opened.
  void require_range(std::uint64_t offset, std::uint64_t size) const;
  // Finds chunks in the file.
  const chunk_locator& chunks() const noexcept { return chunks_; }

 private:
  chunk_locator chunks_;
  int descriptor_ = -1;
};

}  // namespace zarrbits::conversion

#endif
