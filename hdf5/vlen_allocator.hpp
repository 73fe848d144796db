// SPDX-License-Identifier: BSL-1.0
//
// Limits the memory that libhdf5 allocates while it reads strings and sequences of variable length. A file of a megabyte can make
// it allocate gigabytes, because any number of values may share the same piece of the file.
//
//   vlen_allocator strings(64 << 20);
//   H5Dread(dataset, type, space, space, strings.transfer(), values.data());   // fails above that limit: strings.exceeded()
//
#ifndef ZARRBITS_HDF5_VLEN_ALLOCATOR_HPP
#define ZARRBITS_HDF5_VLEN_ALLOCATOR_HPP

#include "hdf5/h5.hpp"
#include "hdf5/type_description.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace zarrbits::hdf5 {

// Owns the memory that is allocated through it.
class vlen_allocator {
 public:
  explicit vlen_allocator(std::uint64_t max_bytes);
  ~vlen_allocator();
  vlen_allocator(const vlen_allocator&) = delete;
  vlen_allocator& operator=(const vlen_allocator&) = delete;

  hid_t transfer() const { return transfer_; }  // a property list for H5Dread and H5Tconvert
  // A piece for our own use; null if that would be too much.
  void* take(std::size_t size) { return allocate(size, this); }
  bool exceeded() const { return exceeded_; }
  std::uint64_t used() const { return used_; }
  // A separate string, zero-terminated. Throws failure if there is no room.
  char* copy(std::string_view text);
  void clear();

 private:
  struct block;
  static void* allocate(std::size_t size, void* self);
  static void deallocate(void* memory, void* self);

  std::uint64_t max_bytes_, used_ = 0;
  bool exceeded_ = false;
  block* blocks_ = nullptr;
  handle transfer_;
};

// True if values contain strings or sequences of variable length.
bool holds_variable(const type_description& t);

// The bytes that H5Aread would allocate for an attribute: H5Aread itself takes no limit. Throws failure if they are more than
// `max_bytes`.
std::uint64_t count_variable_bytes(hid_t attribute, const type_description& type, std::uint64_t elements,
                                   std::uint64_t max_bytes);

}  // namespace zarrbits::hdf5

#endif
