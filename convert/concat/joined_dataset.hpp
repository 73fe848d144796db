// SPDX-License-Identifier: BSL-1.0
//
// The chunks of an array that the datasets of several files make up, after those that a growing store already has.
//
//   const std::unique_ptr<hdf5::chunk_source> data = open_chunks(first, first.objects()[i]);  // after join_files()
//
#ifndef ZARRBITS_CONVERT_CONCAT_JOINED_DATASET_HPP
#define ZARRBITS_CONVERT_CONCAT_JOINED_DATASET_HPP

#include "convert/concat/joined_parts.hpp"
#include "hdf5/chunk_source.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

class joined_dataset final : public hdf5::chunk_source {
 public:
  // From the dataset of the first file, whose object has `joined`.
  explicit joined_dataset(hdf5::opened_dataset first);

  array::extents chunk_shape() const override;
  bool can_reuse_chunks() const override { return hdf5::chunk_source::can_reuse_chunks() && !parts_.type; }
  bool is_composite() const override { return true; }
  std::optional<array::chunk_grid> grid_of_parts(const array::chunk_grid& regular) const override;
  hdf5::reused_chunks reuse_on(const array::chunk_grid& grid) const override;
  bool can_be_walked() const override { return true; }
  bool nothing_stored() const override { return parts_.nothing_stored && !parts_.existing; }
  std::uint64_t visit_stored(std::uint64_t first, std::uint64_t count, const stored_visitor& visit) const override;
  std::uint64_t visit_all(std::uint64_t first, std::uint64_t count, const chunk_visitor& visit) const override;
  hdf5::stored_chunk find_chunk(const array::extents& first, std::uint64_t size) const override;
  bool is_remote() const override { return parts_.files->any_remote(); }
  std::shared_ptr<const io::byte_source> bytes_of(std::size_t file) const override;
  std::optional<std::size_t> growing_axis() const override { return parts_.axis; }
  bool has_gaps() const override { return parts_.has_gaps(); }
  void for_each_stored_part(const array::box& block, const part_visitor& visit) const override;
  bool is_in_store(const array::extents& coordinates) const override;
  bool overlaps_stored_part(const array::extents& coordinates) const override;

 protected:
  void read_values(hid_t memory, std::size_t size, const array::extents& first, const array::extents& count,
                   const array::extents& extent, compressors::buffer& out, hdf5::vlen_allocator* strings,
                   const array::extents& corner) const override;

 private:
  struct chunk_of_part {
    hdf5::chunk_in_files chunk;
    const hdf5::stored_place* location = nullptr;  // where it lies, if that was asked before
  };
  // Visits the chunks that the store does not have yet; the others are not walked one by one. Returns their number.
  std::uint64_t visit_new(std::uint64_t first, std::uint64_t count, const chunk_visitor& visit) const;
  // If a chunk is one chunk of a part.
  std::optional<chunk_of_part> part_with(const array::extents& coordinates) const;
  const hdf5::stored_place* find_location(const joined_part& part, const array::extents& first) const;
  // True if any value is stored of a chunk that is not a chunk of a part.
  bool has_values(const array::extents& coordinates) const;
  // Each part is one step along a new first axis, which its dataset does not have.
  bool adds_axis() const { return !object.overrides.new_dimension.empty(); }

  const joined_parts& parts_;
};

// The chunks of an object: those of its dataset, or of all that are joined in it. Throws zarrbits::error, hdf5::failure.
std::unique_ptr<hdf5::chunk_source> open_chunks(hdf5::source_file& file, const hdf5::source_object& object);

}  // namespace zarrbits::conversion

#endif
