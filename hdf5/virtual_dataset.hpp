// SPDX-License-Identifier: BSL-1.0
//
// The chunks of a virtual dataset: those of its sources, where one of them is a chunk of the array; libhdf5 reads all others.
//
#ifndef ZARRBITS_HDF5_VIRTUAL_DATASET_HPP
#define ZARRBITS_HDF5_VIRTUAL_DATASET_HPP

#include "hdf5/source_dataset.hpp"
#include "hdf5/virtual_parts.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::hdf5 {

class virtual_dataset final : public source_dataset {
 public:
  // Throws zarrbits::error, failure.
  explicit virtual_dataset(opened_dataset opened);

  array::extents chunk_shape() const override;
  bool can_reuse_chunks() const override { return is_composite() && !rechunked(); }
  bool is_composite() const override { return mapped_ && !mapped_->chunk().empty(); }
  std::optional<array::chunk_grid> grid_of_parts(const array::chunk_grid& regular) const override;
  reused_chunks reuse_on(const array::chunk_grid& grid) const override;
  bool nothing_stored() const override;
  std::uint64_t max_stored_chunks() const override { return chunk_source::max_stored_chunks(); }
  std::uint64_t visit_stored(std::uint64_t first, std::uint64_t count, const stored_visitor& visit) const override;
  std::uint64_t visit_all(std::uint64_t first, std::uint64_t count, const chunk_visitor& visit) const override;
  bool skips_empty() const override { return mapped_ != nullptr; }
  stored_chunk find_chunk(const array::extents& first, std::uint64_t size) const override;
  bool is_remote() const override { return source_dataset::is_remote() || (mapped_ && mapped_->files().any_remote()); }
  std::shared_ptr<const io::byte_source> bytes_of(std::size_t file) const override;
  void require_unchanged(std::uint64_t first, std::uint64_t count) const override;

 private:
  // If a chunk is one chunk of a source.
  std::optional<chunk_in_files> chunk_of_source(const array::extents& index) const;
  // The boxes of chunks that may have values of sources.
  array::box_test boxes_with_values() const;

  std::unique_ptr<const virtual_parts> mapped_;  // null if its mapping is unknown
};

// Opens a dataset, virtual or not. Throws zarrbits::error, failure.
std::unique_ptr<chunk_source> open_dataset(source_file& file, const source_object& object);

}  // namespace zarrbits::hdf5

#endif
