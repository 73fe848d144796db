// SPDX-License-Identifier: BSL-1.0
//
// The chunks of one HDF5 dataset, and its values as libhdf5 reads them.
//
#ifndef ZARRBITS_HDF5_SOURCE_DATASET_HPP
#define ZARRBITS_HDF5_SOURCE_DATASET_HPP

#include "hdf5/chunk_index.hpp"
#include "hdf5/chunk_source.hpp"
#include "hdf5/heap_strings.hpp"
#include "hdf5/string_blocks.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

namespace zarrbits::hdf5 {

struct stored_place;

class source_dataset : public chunk_source {
 public:
  // Throws failure.
  source_dataset(source_file& source, const source_object& of) : source_dataset(opened_dataset(source, of)) {}
  explicit source_dataset(opened_dataset opened);

  std::uint64_t max_stored_chunks() const override;
  std::uint64_t visit_stored(std::uint64_t first, std::uint64_t count, const stored_visitor& visit) const override;
  // Stored size in bytes of the chunk that begins at the element `first`; 0 if it was never written, whatever was read before.
  // Throws failure if the index cannot be read. The caller holds lock, or is alone.
  std::uint64_t stored_size(const array::extents& first) const;
  stored_chunk find_chunk(const array::extents& first, std::uint64_t size) const override;
  void for_each_stored_part(const array::box& block, const part_visitor& visit) const override;
  std::optional<std::uint64_t> contiguous_address() const override;
  // The elements of a stored chunk in the stored type; empty if it is not stored. Callable from any thread. Throws failure,
  // corrupt_chunk.
  std::optional<compressors::buffer> decoded_chunk(const array::extents& first) const;
  // Where all its chunks are in the file, in C order; nothing where they are more than `max_chunks`, or that is not known. Throws
  // failure.
  std::vector<stored_place> places_of_chunks(std::size_t max_chunks) const;

 protected:
  void read_values(hid_t memory, std::size_t size, const array::extents& first, const array::extents& count,
                   const array::extents& out_shape, compressors::buffer& out, vlen_allocator* strings,
                   const array::extents& corner) const override;

 private:
  // False for fill values in libhdf5's cache, for which libhdf5 reports a size too.
  bool is_stored(const array::extents& first, std::uint64_t size) const;
  // Decodes the stored chunks of a block once each, because H5Dread does not check their decoded length. Throws corrupt_chunk,
  // io::read_error.
  void require_whole_chunks(const array::extents& first, const array::extents& count) const;
  void require_whole_chunk(const array::extents& first) const;
  // Reads strings of one stored chunk, or of a range of all, without libhdf5; false if it cannot.
  bool read_strings(const array::extents& first, const array::extents& count, const array::extents& out_shape,
                    compressors::buffer& out, vlen_allocator& strings) const;
  std::optional<compressors::buffer> elements_of(const array::extents& first, const array::extents& count,
                                                 const array::extents& out_shape) const;

  std::optional<heap_format> heap_;             // set if its strings can be read without libhdf5
  std::optional<string_blocks> string_blocks_;  // set if its values are strings of variable length
  struct verified_chunks {
    std::mutex mutex;
    std::set<array::extents> chunks;
  };
  std::unique_ptr<verified_chunks> verified_ = std::make_unique<verified_chunks>();
};

}  // namespace zarrbits::hdf5

#endif
