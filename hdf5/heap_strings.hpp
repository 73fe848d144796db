// SPDX-License-Identifier: BSL-1.0
//
// Reads variable-length strings directly from the file: an element is a length and the place of the text in a global heap.
// libhdf5 looks up each string separately, under its lock, which takes most of the time to read such a dataset.
//
#ifndef ZARRBITS_HDF5_HEAP_STRINGS_HPP
#define ZARRBITS_HDF5_HEAP_STRINGS_HPP

#include "compressors/buffer.hpp"
#include "hdf5/vlen_allocator.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace zarrbits::io {
class byte_source;
}

namespace zarrbits::hdf5 {

// The file's encoding of heap addresses.
struct heap_format {
  const io::byte_source* file = nullptr;
  std::uint64_t file_size = 0;
  std::uint64_t base = 0;  // offset in the file where its addresses begin
  std::size_t address_size = 8, length_size = 8;
  std::size_t element_size() const { return 4 + address_size + 4; }
};

class heap_strings {
 public:
  explicit heap_strings(const heap_format& format) : format_(format) {}

  // Reads the text of each of these elements, zero-terminated; null if it was never written. False if `memory` has no room for
  // them. Throws corrupt_chunk, io::read_error.
  bool read(std::span<const std::byte> elements, std::span<char*> texts, vlen_allocator& memory);

 private:
  // `objects` are ordered by number. It is not a table by number: a collection of 40 bytes may have an object 65535.
  struct object {
    std::uint64_t number = 0;
    std::size_t offset = 0, size = 0;  // in `bytes`
  };
  struct collection {
    compressors::buffer bytes;
    std::vector<object> objects;
    // Null if it has no such object.
    const object* find(std::uint64_t number) const;
  };
  const collection& find(std::uint64_t address);
  void load(std::uint64_t address, collection& c);
  char* take(std::size_t size, vlen_allocator& memory);

  heap_format format_;
  std::map<std::uint64_t, collection> collections_;
  std::uint64_t cached_bytes_ = 0, read_ = 0;  // bytes
  std::uint64_t last_address_ = 0;
  const collection* last_ = nullptr;
  std::span<char> arena_;
};

}  // namespace zarrbits::hdf5

#endif
