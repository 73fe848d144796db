// SPDX-License-Identifier: BSL-1.0
//
// Makes the objects of one array: copies them, or their chunks, or decodes and encodes.
//
//   rechunker work(array, change, path, options, &out);
//   work.list();                                    // the objects of the source, and the items to make of them
//   array_result r = work.make(0, work.items());    // or parts of it, in any thread
//
// If change.plan has two passes, plan_staging() comes first, then stage() for each number in any thread, and
// finish_staging().
//
#ifndef ZARRBITS_CONVERT_FROM_ZARR_RECHUNKER_HPP
#define ZARRBITS_CONVERT_FROM_ZARR_RECHUNKER_HPP

#include "array/chunk_grid.hpp"
#include "convert/from_zarr/source_array.hpp"
#include "convert/from_zarr/zarr_array_plan.hpp"
#include "convert/pipeline/work_unit_result.hpp"
#include "io/scratch_file.hpp"
#include "text/sha256.hpp"
#include "zarr/write/shard.hpp"
#include "zarr/write/store_writer.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

class rechunker {
 public:
  // The references live as long as this. `path`: "/a/b", of the array in both stores. `out`: null if nothing is to be made.
  rechunker(const source_array& array, const zarr_array_plan& change, const std::string& path, const convert_options& options,
            zarr::store_writer* out);

  // Throws store_error, not_supported, and zarrbits::error if the memory cannot hold the list.
  void list();
  std::uint64_t source_bytes() const noexcept { return source_bytes_; }
  // Those of each part of a joined array.
  const std::vector<std::uint64_t>& bytes_of_parts() const noexcept { return bytes_of_parts_; }
  // Adds which objects of the source list() found, and their states.
  void add_identity(text::sha256& sum) const;
  // What is made one by one: objects of the target, or regions of them.
  std::uint64_t items() const noexcept { return items_.size(); }
  // Which of them makes the object of the target with these coordinates ("1/2"); nothing if none does.
  std::optional<std::uint64_t> item_of(std::string_view coordinates) const;
  // Whether there are chunks, or shards, that were never written.
  bool has_gaps() const;
  // Objects of the target, at most.
  std::uint64_t objects() const;
  // Bytes of a chunk before compression: of the source, or of the target if those are larger.
  std::uint64_t chunk_bytes() const;
  // Bytes of memory to make one item, or to stage one box.
  std::uint64_t memory() const;
  // Bytes of all items before compression, at most.
  std::uint64_t plain_bytes() const;

  bool has_two_passes() const noexcept { return change_.plan.two_passes(); }
  // The first of two passes, for the items that are needed: opens the scratch file, and returns how many boxes are to be
  // gathered.
  std::uint64_t plan_staging(const std::vector<bool>& needed, const std::string& scratch_folder);
  void stage(std::uint64_t box_number, array_result& result);
  void finish_staging();
  // After the last item is made.
  void drop_scratch() { scratch_.reset(); }

  // Throws store_error, not_supported, zarrbits::error, corrupt_chunk.
  array_result make(std::uint64_t first, std::uint64_t count) const;

 private:
  // The elements of a box, in C order.
  struct values {
    compressors::buffer data;
    std::vector<std::string> strings;
  };
  using numbers = std::vector<std::uint64_t>;  // sorted

  std::uint64_t bytes_of(const array::extents& shape) const;
  void require_plausible_gaps() const;
  error has_changed() const;
  // Throws that for an object that was changed or removed since list().
  void require_listed(const zarr::stored_object* object, const array::extents& index) const;
  std::optional<zarr::zarr_array::object_range> find_chunk(const source_array& array, const array::extents& chunk) const;
  bool read(const source_array& array, const array::extents& chunk, zarr::element_buffer& target) const;

  // True if the target now refers to these bytes of an object, which stay where they are.
  bool refer_to(const std::string& key, const zarr::stored_object& object, std::uint64_t offset, std::uint64_t size) const;
  void copy_object(const source_array& array, const array::extents& object, array_result& result) const;
  void make_object(const source_array& array, const array::extents& object, array_result& result) const;
  std::optional<compressors::buffer> resharded(const source_array& array, const array::extents& object,
                                               const array::extents& chunk, zarr::shard_writer* shard, std::size_t number,
                                               array_result& result) const;
  void make_region(const source_array& array, const array::extents& region, array_result& result) const;
  void make_chunk_by_chunk(const source_array& array, const array::box& region, array_result& result) const;
  bool is_fill(const values& v) const;
  // The bytes of a chunk that the source does not have; none if the target need not have it.
  std::optional<compressors::buffer> missing_chunk(const source_array& array, const array::extents& chunk) const;
  void put_missing_chunk(const source_array& array, const array::extents& chunk, array_result& result) const;
  std::optional<compressors::buffer> encoded(const values& from, const array::box& of_from, const array::box& chunk,
                                             const array::box& inside) const;
  template <class Each>
  void write_region(const array::box& region, const Each& callback, array_result& result) const;
  template <class Make>
  void write_object(const array::extents& object, const Make& make, array_result& result) const;

  values filled(const array::box& b) const;
  // Reads the source's chunks that share elements with the box, and adds the numbers of those that exist.
  void read_chunks(const source_array& array, const array::box& b, values& target, numbers& present, array_result& result) const;
  void read_tiles(const array::box& region, values& target) const;
  std::uint64_t tile_offset(const array::box& tile, const array::box& region) const;
  bool is_present(const array::box& b, const numbers& present) const;

  array::box source_chunks(const array::box& b) const;
  array::box source_box(const array::extents& chunk) const;
  array::extents object_of(const array::extents& chunk) const;
  bool object_exists(const array::extents& chunk) const;
  array::box object_box(const array::extents& source_object) const;
  std::string key_of(const array::extents& object) const;
  void record_lost_chunk(array_result& result, const array::extents& chunk, const std::string& reason) const;

  const source_array& array_;
  const zarr_array_plan& change_;
  const std::string& path_;
  const convert_options& options_;
  zarr::store_writer* const out_;
  const array::box array_box_;
  const std::uint64_t element_;                                                      // bytes
  const array::chunk_grid target_chunks_, target_objects_, regions_, staged_boxes_;  // each a grid over the array
  array::extents source_grid_, source_chunks_;  // numbers of the source's objects, of its chunks
  array::extents target_grid_;                  // of the target's objects
  array::extents items_grid_;
  numbers existing_;  // objects of the source
  numbers states_;    // theirs, when they were listed
  numbers items_;
  std::uint64_t source_bytes_ = 0;
  std::vector<std::uint64_t> bytes_of_parts_;
  std::optional<codecs::chunk_encoder> gap_encoder_;  // if missing chunks are written
  std::unique_ptr<io::scratch_file> scratch_;
  array::extents staged_grid_;
  numbers staged_;    // boxes of the first pass
  numbers needed_;    // regions whose tiles are kept
  numbers present_;   // chunks of the source that the first pass found
  std::mutex mutex_;  // of that
};

}  // namespace zarrbits::conversion

#endif
