// SPDX-License-Identifier: BSL-1.0
//
// How many bytes of metadata a file gets, by writing it without its values: a driver of libhdf5 that keeps metadata in memory,
// drops values, and counts.
//
//   metadata_counter counter;
//   const hdf5::handle file(H5Fcreate("any", H5F_ACC_TRUNC, creation, counter.access()), "create a file");
//   ...
//   counter.bytes();
//
#ifndef ZARRBITS_REPACK_METADATA_SIZE_HPP
#define ZARRBITS_REPACK_METADATA_SIZE_HPP

#include "hdf5/h5.hpp"

#include <cstdint>
#include <memory>

namespace zarrbits::repacking {

class metadata_counter {
 public:
  metadata_counter();
  // Sets the driver in file access properties. Throws hdf5::failure.
  void set_driver(hid_t access) const;
  // From now on values are dropped; before, those of large attributes have to be read again.
  void drop_values() noexcept;
  // Allocated for metadata so far: the superblock, objects, attributes, indexes of chunks; not heaps of values.
  std::uint64_t bytes() const noexcept;

 private:
  struct memory;
  struct driver;
  std::shared_ptr<memory> memory_;
};

}  // namespace zarrbits::repacking

#endif
