// SPDX-License-Identifier: BSL-1.0
//
// An array that is converted: one of a store or, of several stores, their arrays one after the other along an axis. Indexes of
// chunks and objects are those of the whole.
//
//   source_array array(zarr::zarr_array(folder, codecs::make_decoder));
//   if (const auto stored = array.find_stored({3, 0})) array.decode({3, 0}, zarr::zarr_array::read(*stored), elements);
//
#ifndef ZARRBITS_CONVERT_FROM_ZARR_SOURCE_ARRAY_HPP
#define ZARRBITS_CONVERT_FROM_ZARR_SOURCE_ARRAY_HPP

#include "array/box.hpp"
#include "array/extents.hpp"
#include "metadata/dimension_grid.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::conversion {

// This many elements, all of them `fill`, which is one element.
zarr::element_buffer filled(std::uint64_t elements, const zarr::element_buffer& fill);

// Not thread-safe: it keeps a shard open. Each thread has its own copy. Throws store_error and not_supported, as zarr_array does,
// and unrepresentable_value for elements that the whole cannot have.
class source_array {
 public:
  using extents = array::extents;
  // Converts decoded elements to the type and the terms of the whole array.
  using element_change = std::function<void(zarr::element_buffer& elements)>;

  struct part {
    std::optional<zarr::zarr_array> array = {};  // none: the store does not have it, and all of it has the fill value
    std::uint64_t length = 0;                    // along the axis, not 0
    element_change change = {};
    bool is_stored_alike = true;  // its codecs are those of the whole array
    // One element, of the whole's type: what chunks have that the part does not have, if not the fill value of the whole. Such
    // chunks are listed, opened and decoded like the others.
    std::optional<zarr::element_buffer> own_fill = {};
    // Why the whole cannot have that value, and such a chunk is an unrepresentable_value; "" if it can.
    std::string unrepresentable_fill = {};
    std::string source = {};  // the name of its store, for sentences
  };
  // What all parts together are.
  struct whole {
    std::size_t axis = 0;
    zarr::zarr_type type;
    zarr::element_buffer fill;  // one element
  };

  explicit source_array(zarr::zarr_array array);
  // All have the same shape, save for the axis, and regular chunks of the same shape, save for the axis; at least one has an
  // array. Throws not_supported for more than 2^63 elements along the axis.
  source_array(std::vector<part> parts, whole joined);

  const extents& shape() const noexcept { return shape_; }
  const extents& chunk_shape() const noexcept { return chunk_shape_; }  // of the longest chunks
  const extents& chunks_per_shard() const noexcept { return per_shard_; }
  const metadata::dimension_grid& grid(std::size_t dimension) const { return grids_.at(dimension); }
  extents chunks() const;  // their number in each dimension
  bool is_regular() const noexcept;
  const zarr::zarr_type& type() const noexcept { return whole_.type; }
  const zarr::element_buffer& fill() const noexcept { return whole_.fill; }

  bool is_joined() const noexcept { return is_joined_; }
  // The shape of the first part's chunks, and how many of them its shards have: those of a regular grid for the whole.
  extents usual_chunk() const;
  const extents& usual_per_shard() const noexcept { return usual_per_shard_; }
  // True if stored chunks are chunks of the whole as they are: no part ends within a chunk, and none has other values or codecs.
  bool has_stored_chunks() const noexcept { return has_stored_chunks_; }
  // Whether one chunk is, in whatever else differs.
  bool is_stored_chunk(const extents& chunk) const;
  // True if shards of parts are not shards of the whole: then objects are chunks, and those of one shard have its state.
  bool divides_shards() const noexcept { return divides_shards_; }

  void require_decodable() const;
  // The shape of a chunk; the last ones may reach over the edge of the array.
  extents shape_of(const extents& chunk) const;
  // The store that a chunk is from, "" of one store, and the chunk's index there.
  std::pair<std::string, extents> find_source(const extents& chunk) const;
  bool in_storage_order(const extents& a, const extents& b) const;
  // `part`: the number of the part that the object is in. Of a divided shard, `object.size` is a share of the shard's.
  using object_visitor = std::function<bool(const extents& index, const zarr::store_entry& object, std::size_t part)>;
  void for_each_object(const object_visitor& visit) const;
  std::unique_ptr<zarr::stored_object> open_object(const extents& object) const;
  std::optional<zarr::zarr_array::object_range> find_stored(const extents& chunk) const;
  // As zarr_array has them.
  std::optional<std::vector<extents>> list_chunks(std::size_t max_count) const;
  std::optional<std::vector<std::byte>> read_stored(const extents& chunk) const;
  void decode(const extents& chunk, std::vector<std::byte> stored, zarr::element_buffer& out) const;
  // The elements of a box in the array, in C order.
  zarr::element_buffer read_box(const array::box& region) const;

 private:
  struct located {
    std::size_t part;
    extents index;  // in the part
  };
  located find_part(extents index, const std::vector<std::uint64_t>& first) const;
  extents in_whole(std::size_t number, extents index, const std::vector<std::uint64_t>& first) const;
  bool visit_objects(std::size_t number, const object_visitor& visit) const;
  bool visit_all_chunks(std::size_t number, const object_visitor& visit) const;

  whole whole_;
  std::vector<part> parts_;
  std::vector<std::uint64_t> first_chunk_, first_object_;  // of each part, along the axis
  extents shape_, chunk_shape_, per_shard_, usual_per_shard_;
  std::vector<metadata::dimension_grid> grids_;
  bool is_joined_ = false, has_stored_chunks_ = true, divides_shards_ = false;
};

}  // namespace zarrbits::conversion

#endif
