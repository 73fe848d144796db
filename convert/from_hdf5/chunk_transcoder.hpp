// SPDX-License-Identifier: BSL-1.0
//
// Turns the stored bytes of an HDF5 chunk into the bytes of a Zarr chunk, in the cheapest correct way for this chunk. Writes
// nothing.
//
#ifndef ZARRBITS_CONVERT_FROM_HDF5_CHUNK_TRANSCODER_HPP
#define ZARRBITS_CONVERT_FROM_HDF5_CHUNK_TRANSCODER_HPP

#include "convert/plan/array_plan.hpp"

#include <optional>

namespace zarrbits::conversion {

struct encoded_chunk {
  compressors::buffer bytes;
  outcome chunk_outcome = outcome::raw;
  bool dangling = false;  // a reference in it points to nothing
};

class chunk_transcoder {
 public:
  explicit chunk_transcoder(const array_plan& plan) : plan_(plan), data_(plan.data) {}

  // Makes a chunk from stored bytes and their filter mask (HDF5's; all ones for chunks at the edge that are stored unfiltered).
  // Empty if only libhdf5 can decode it. Throws corrupt_chunk, wrong_assumption, zarrbits::error.
  std::optional<encoded_chunk> from_stored(compressors::buffer stored, unsigned mask, const array::extents& chunk_index) const;
  // True if a chunk of this stored size becomes a chunk of the store without a look at its bytes.
  bool is_copied(const array::extents& chunk_index, std::uint64_t stored, unsigned mask) const {
    return !plan_.checksum && plan_.step_for(chunk_index, stored, mask) == array_plan::step::take;
  }
  // From the values of the whole chunk in memory.
  encoded_chunk from_values(compressors::buffer values, const array::extents& chunk_index) const;

  // Reads the values of the chunk through libhdf5; those of variable length go to `strings`. Throws hdf5::failure.
  bool has_strings() const { return hdf5::holds_variable(plan_.leaf); }
  compressors::buffer read_values(const array::extents& chunk_index, hdf5::vlen_allocator* strings) const;
  // Those that can be read of a chunk with parts of several stored ones; the others are the fill value. Nothing if none can be
  // read, or there are strings in it.
  std::optional<compressors::buffer> read_parts(const array::extents& chunk_index) const;
  bool is_beyond(const array::extents& chunk_index) const;
  bool is_all_fill(const compressors::buffer& values) const;

  // Approximate bytes of memory to make a chunk, with its own: from `stored` bytes, and if libhdf5 reads it.
  std::uint64_t memory_from_stored(std::uint64_t stored) const;
  std::uint64_t memory_from_read() const;
  // For the largest chunk under this plan; at most a small multiple of its size (or that of its values in memory).
  std::uint64_t memory() const;
  static constexpr unsigned max_memory_factor = 4;

 private:
  compressors::buffer fill_values(const array::extents& chunk_index) const;
  // A box of the chunk, into its values.
  void read_box(const array::extents& chunk_index, const array::box& box, compressors::buffer& values,
                hdf5::vlen_allocator* strings) const;
  std::optional<encoded_chunk> without_checksum(compressors::buffer stored, unsigned mask,
                                                const array::extents& chunk_index) const;
  encoded_chunk checked(compressors::buffer stored, const array::extents& chunk_index) const;
  encoded_chunk decoded(compressors::buffer stored, unsigned mask, const array::extents& chunk_index) const;
  // The chunk in the source, if it is known.
  struct original {
    std::size_t size = 0;
    compressors::buffer fallback_bytes;  // stored instead if it becomes larger; empty if absent
  };
  encoded_chunk encoded(compressors::buffer values, const array::extents& chunk_index, original* source = nullptr) const;
  compressors::buffer reusable_stream(const compressors::buffer& stored, unsigned mask, std::size_t size) const;
  encoded_chunk native(compressors::buffer stored, std::size_t plain_size) const;
  std::uint64_t plain_bytes() const;
  encoded_chunk rewrapped(compressors::buffer stored, unsigned mask, const array::extents& chunk_index) const;
  compressors::buffer to_memory(compressors::buffer stored) const;
  void clear_beyond_edge(compressors::buffer& values, const array::extents& chunk_index) const;
  void encode_text(encoded_chunk& chunk, const compressors::buffer& values) const;
  void encode_flat(encoded_chunk& chunk, compressors::buffer& values) const;
  void encode_packed(compressors::buffer& values, const array::extents& chunk_index) const;
  void compress(encoded_chunk& chunk, compressors::buffer bytes, original* source) const;
  void check_bools(compressors::buffer& values) const;
  void require_size(const compressors::buffer& stored, std::size_t size) const;
  array::extents index_in_chunk(std::uint64_t element, const array::extents& chunk_index) const;

  const array_plan& plan_;
  const hdf5::chunk_source& data_;
};

// "[0, 4]"
std::string format_index(const array::extents& index);

}  // namespace zarrbits::conversion

#endif
