// SPDX-License-Identifier: BSL-1.0
//
// The bytes of an open HDF5 file, for reads without libhdf5 and its lock.
//
#ifndef ZARRBITS_HDF5_FILE_BYTES_HPP
#define ZARRBITS_HDF5_FILE_BYTES_HPP

#include "hdf5/chunk_locator.hpp"
#include "io/byte_source.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace zarrbits::hdf5 {

class file_bytes {
 public:
  // For an open file of chunk_locator's driver.
  explicit file_bytes(chunk_locator chunks);

  // Throws io::read_error, zarrbits::error.
  void read(std::uint64_t offset, std::span<std::byte> out) const { bytes_->read(offset, out); }
  // Throws io::read_error if the file was shorter when it was opened.
  void require_range(std::uint64_t offset, std::uint64_t size) const;
  // Its state now; of a remote file, when it was opened.
  io::file_state state() const { return bytes_->state(); }
  // Null if the file is local.
  const remote::remote_file* remote() const noexcept { return bytes_->remote(); }
  const std::shared_ptr<const io::byte_source>& source() const noexcept { return bytes_; }
  // Finds chunks in the file.
  const chunk_locator& chunks() const noexcept { return chunks_; }

 private:
  chunk_locator chunks_;
  std::shared_ptr<const io::byte_source> bytes_;
};

}  // namespace zarrbits::hdf5

#endif
