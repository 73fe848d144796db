// SPDX-License-Identifier: BSL-1.0
//
// How a chunk of the store becomes a chunk of the file: which of HDF5's filters have it as it is, and which parts are re-encoded.
// The inverse of convert/plan/array_plan.hpp.
//
#ifndef ZARRBITS_EXPORT_CHUNK_PLAN_HPP
#define ZARRBITS_EXPORT_CHUNK_PLAN_HPP

#include "compressors/buffer.hpp"
#include "export/dataset_spec.hpp"
#include "hdf5/filters.hpp"

#include <zarrbits/export.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::exporting {

// A chunk of the file, in whichever memory it was made.
struct encoded_chunk {
  std::vector<std::byte> stored;
  compressors::buffer encoded;
  bool is_encoded = false;
  bool is_recoded = false;  // and not copied

  std::span<const std::byte> bytes() const { return is_encoded ? std::span<const std::byte>(encoded) : stored; }
};

class chunk_plan {
 public:
  // For a dataset in chunks whose values have a fixed length.
  chunk_plan(const conversion::source_array& array, const store_node& node, const dataset_spec& form,
             const export_options& options);

  // In the order of encoding; libhdf5 needs none of them to write.
  const std::vector<hdf5::filter>& filters() const noexcept { return filters_; }
  outcome expected_outcome() const noexcept { return !copies_ ? outcome::recoded : frames_ ? outcome::rewrapped : outcome::raw; }

  // Callable from several threads, each with an array of its own. Throws store_error, not_supported and corrupt_chunk.
  encoded_chunk make(const conversion::source_array& array, const array::extents& chunk, std::vector<std::byte> stored) const;
  // Like make(), for elements as element_buffer has them.
  encoded_chunk encode(std::vector<std::byte> elements) const;

  // Whether chunks are encoded with deflate, in which case a faster encoder may make them as small as readers expect them.
  bool may_deflate_faster() const noexcept;
  // Uses libdeflate's first level, in half of the time of its fourth, if it makes these elements of chunks no larger than zlib
  // does at the level of filters(), which stays what the file says.
  void deflate_faster_if_no_larger(const std::vector<std::vector<std::byte>>& samples);

 private:
  // How the length of a copied chunk is checked: HDF5 before 2.2 gives readers what lies in memory after a short one.
  enum class check { size, gzip, zstd, blosc, lz4, zlib_in_blosc, decode };

  void plan_copy(const conversion::source_array& array, const store_node& node, bool standard);
  void add(H5Z_filter_t id, const char* name, std::vector<unsigned> values);
  bool packs(const conversion::source_array& array, const text::json& configuration);
  void choose_filters(const text::json& codecs, const export_options& options);
  std::optional<encoded_chunk> copied(const conversion::source_array& array, const array::extents& chunk,
                                      std::vector<std::byte>& stored) const;
  encoded_chunk recoded(const conversion::source_array& array, const array::extents& chunk, std::vector<std::byte> stored) const;

  const dataset_spec& spec_;
  std::vector<hdf5::filter> filters_;
  std::size_t values_ = 1;   // in a chunk
  std::size_t plain_ = 0;    // bytes of a chunk before compression
  std::size_t in_file_ = 0;  // bytes of a value
  bool copies_ = false, frames_ = false, ends_with_crc32c_ = false;
  check check_ = check::size;
};

}  // namespace zarrbits::exporting

#endif
