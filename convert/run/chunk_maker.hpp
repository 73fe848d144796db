// SPDX-License-Identifier: BSL-1.0
//
// Stored bytes of an HDF5 chunk to the bytes of a Zarr chunk, by the cheapest way that is right for this one. Nothing is written.
//
#ifndef ZARRBITS_CONVERT_RUN_CHUNK_MAKER_HPP
#define ZARRBITS_CONVERT_RUN_CHUNK_MAKER_HPP

#include "convert/plan/array_plan.hpp"

#include <optional>

namespace zarrbits::conversion {

struct made_chunk {
  buffer bytes;
  outcome how = outcome::raw;
  bool dangling = false;  // a reference in it points nowhere
};

class chunk_maker {
 public:
  explicit chunk_maker(const array_plan& plan) : plan_(plan), data_(plan.data) {}

  // From what is stored, with its filter mask (HDF5's, and all ones for chunks over the edge that are stored unfiltered).
  // Nothing where only libhdf5 knows how. Throws damaged_chunk, wrong_assumption, convert_error.
  std::optional<made_chunk> from_stored(buffer stored, unsigned mask, const std::vector<hsize_t>& at) const;
  // True where so many stored bytes are the chunk of the store as they are, and need not be looked at.
  bool is_copied(std::uint64_t stored, unsigned mask) const { return !plan_.checksum && needs_no_look(stored, mask); }
  // From values in memory, of the whole chunk.
  made_chunk from_values(buffer values, const std::vector<hsize_t>& at) const;

  // Values of the chunk through libhdf5, with what is of variable length in `strings`. Throws h5::failure.
  bool has_strings() const { return holds_variable(plan_.leaf); }
  buffer read_values(const std::vector<hsize_t>& at, variable_memory* strings) const;
  bool all_fill(const buffer& values) const;

  // Bytes of memory that making a chunk takes, about, its own included: from `stored` ones, and where libhdf5 reads it.
  std::uint64_t memory_from_stored(std::uint64_t stored) const;
  std::uint64_t memory_from_read() const;
  // Of the largest chunk, as it is planned; never more than so many times its size (or that of its values in memory).
  std::uint64_t memory() const;
  static constexpr unsigned most_times = 4;

 private:
  bool needs_no_look(std::uint64_t stored, unsigned mask) const;
  std::optional<made_chunk> without_checksum(buffer stored, unsigned mask, const std::vector<hsize_t>& at) const;
  // `stored`: how long the chunk is in the source, where that is known.
  made_chunk encoded(buffer values, const std::vector<hsize_t>& at, std::optional<std::size_t> stored = {}) const;
  made_chunk native(buffer stored, std::size_t plain_size) const;
  std::uint64_t plain_bytes() const;
  made_chunk rewrapped(buffer stored, unsigned mask, const std::vector<hsize_t>& at) const;
  buffer to_memory(buffer stored) const;
  void encode_text(made_chunk& chunk, const buffer& values) const;
  void encode_flat(made_chunk& chunk, buffer& values) const;
  void encode_packed(buffer& values, const std::vector<hsize_t>& at) const;
  buffer compress(buffer bytes, std::optional<std::size_t> stored) const;
  void check_bools(buffer& values) const;
  void expect_size(const buffer& stored, std::size_t size) const;
  std::vector<hsize_t> index_in_chunk(std::uint64_t element, const std::vector<hsize_t>& at) const;

  const array_plan& plan_;
  const source_dataset& data_;
};

// "[0, 4]"
std::string place(const std::vector<hsize_t>& at);

}  // namespace zarrbits::conversion

#endif
