// SPDX-License-Identifier: BSL-1.0
//
// Where in the file the bytes of a chunk are, so that they can be read (or copied by the kernel) without libhdf5 and its lock.
//
// libhdf5's functions that tell a chunk's address take time that grows with the number of chunks each call, and are wrong for some indexes
// (chunk_index.cpp). H5Dread_chunk is neither. So the file is opened with a driver of ours, which hands everything on to libhdf5's own (sec2); asked for
// an address, it lets H5Dread_chunk look the chunk up, and notes what would have been read instead of reading it.
//
#ifndef ZARRBITS_CONVERT_HDF5_CHUNK_LOCATOR_HPP
#define ZARRBITS_CONVERT_HDF5_CHUNK_LOCATOR_HPP

#include "convert/hdf5/h5.hpp"

#include <cstdint>
#include <optional>

namespace zarrbits::conversion {

class chunk_locator {
 public:
  // Makes `access` open local files through our driver. Where libhdf5 does not take it, all stays as it was.
  static void set_driver(hid_t access) noexcept;

  chunk_locator() = default;
  // Of a file that was opened so; of any other it finds nothing.
  explicit chunk_locator(hid_t file) noexcept;

  // The offset in the file of a chunk of `size` stored bytes, and its filter mask. Nothing where that is not known: H5Dread_chunk is to be asked.
  // The caller holds h5::lock, or is alone.
  std::optional<std::uint64_t> find(hid_t dataset, const hsize_t* first_element, std::uint64_t size, unsigned& mask) const noexcept;

 private:
  struct driver;
  void* file_ = nullptr;  // the driver's
};

}  // namespace zarrbits::conversion

#endif
