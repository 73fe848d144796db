// SPDX-License-Identifier: BSL-1.0
//
// Makes the objects of one array: copies them, or their chunks, or decodes and encodes.
//
//   change_chunks work(array, change, "/a", options, out);
//   work.list();                                    // what exists in the source, and what is to be made of it
//   array_result r = work.make(0, work.items());    // or parts of it, in any thread
//
// If change.plan has two passes, plan_gathering() comes first, then gather() for each number in any thread, and
// finish_gathering().
//
#ifndef ZARRBITS_CONVERT_FROM_ZARR_CHANGE_CHUNKS_HPP
#define ZARRBITS_CONVERT_FROM_ZARR_CHANGE_CHUNKS_HPP

#include "convert/from_zarr/array_change.hpp"
#include "convert/from_zarr/scratch_file.hpp"
#include "convert/run/unit_result.hpp"
#include "text/sha256.hpp"
#include "zarr/write/shard.hpp"
#include "zarr/write/sink.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

class change_chunks {
 public:
  // The references live as long as this. `path`: "/a/b", of the array in both stores. `out`: null if nothing is to be made.
  change_chunks(const zarr::zarr_array& array, const array_change& change, const std::string& path,
                const convert_options& options, zarr::sink* out);

  // Throws store_error, not_supported, and zarrbits::error if the memory cannot hold the list.
  void list();
  std::uint64_t source_bytes() const noexcept { return source_bytes_; }
  // Adds which objects of the source list() found, and their states.
  void add_identity(text::sha256& sum) const;
  // What is made one by one: objects of the target, or regions of them.
  std::uint64_t items() const noexcept { return items_.size(); }
  // Which of them makes the object of the target with these coordinates ("1/2"); nothing if none does.
  std::optional<std::uint64_t> item_of(std::string_view coordinates) const;
  // Objects of the target, at most.
  std::uint64_t objects() const;
  // Bytes of a chunk before compression: of the source, or of the target if those are larger.
  std::uint64_t chunk_bytes() const;
  // Bytes of memory to make one item, or to gather one box.
  std::uint64_t memory() const;
  // Bytes of all items before compression, at most.
  std::uint64_t plain_bytes() const;

  bool has_two_passes() const noexcept { return change_.plan.two_passes(); }
  // The first of two passes, for the items that are needed: opens the scratch file, and returns how many boxes are to be
  // gathered.
  std::uint64_t plan_gathering(const std::vector<bool>& needed, const std::string& scratch_folder);
  void gather(std::uint64_t box_number, array_result& done);
  void finish_gathering();
  // After the last item is made.
  void drop_scratch() { scratch_.reset(); }

  // Throws store_error, not_supported, zarrbits::error, damaged_chunk.
  array_result make(std::uint64_t first, std::uint64_t count) const;

 private:
  // The elements of a box, in C order.
  struct values {
    compressors::buffer data;
    std::vector<std::string> strings;
  };
  using numbers = std::vector<std::uint64_t>;  // sorted

  std::uint64_t bytes_of(const extents& shape) const;
  error has_changed() const;
  // Throws that for an object that was changed or removed since list().
  void require_listed(const zarr::stored_object* object, const extents& index) const;
  std::optional<zarr::zarr_array::stored_range> found(const zarr::zarr_array& array, const extents& chunk) const;
  bool read(const zarr::zarr_array& array, const extents& chunk, zarr::zarr_values& to) const;

  void copy_object(const zarr::zarr_array& array, const extents& object, array_result& done) const;
  void make_object(const zarr::zarr_array& array, const extents& object, array_result& done) const;
  std::optional<compressors::buffer> regrouped(const zarr::zarr_array& array, const extents& object, const extents& chunk,
                                  zarr::shard_writer* shard, std::size_t number, array_result& done) const;
  void make_region(const zarr::zarr_array& array, const extents& region, array_result& done) const;
  void make_chunk_by_chunk(const zarr::zarr_array& array, const box& region, array_result& done) const;
  bool is_fill(const values& v) const;
  std::optional<compressors::buffer> encoded(const values& from, const box& of_from, const box& chunk, const box& inside) const;
  template <class Each>
  void write_region(const box& region, const Each& each, array_result& done) const;
  template <class Make>
  void write_object(const extents& object, const Make& make, array_result& done) const;

  values filled(const box& b) const;
  // Reads the source's chunks that share elements with the box, and adds the numbers of those that exist.
  void read_chunks(const zarr::zarr_array& array, const box& b, values& to, numbers& present, array_result& done) const;
  void read_tiles(const box& region, values& to) const;
  std::uint64_t tile_offset(const box& tile, const box& region) const;
  bool is_present(const box& b, const numbers& present) const;

  index_range source_chunks(const box& b) const;
  box source_box(const extents& chunk) const;
  extents object_of(const extents& chunk) const;
  bool object_exists(const extents& chunk) const;
  box object_box(const extents& source_object) const;
  std::string key_of(const extents& object) const;
  void lose(array_result& done, const extents& chunk, const std::string& why) const;

  const zarr::zarr_array& array_;
  const array_change& change_;
  const std::string& path_;
  const convert_options& options_;
  zarr::sink* const out_;
  const box whole_;
  const std::uint64_t element_;          // bytes
  extents source_grid_, source_chunks_;  // of the source's objects, of its chunks
  extents target_grid_;                  // of the target's objects
  extents items_grid_;
  numbers existing_;  // objects of the source
  numbers states_;    // theirs, when they were listed
  numbers items_;
  std::uint64_t source_bytes_ = 0;
  std::unique_ptr<scratch_file> scratch_;
  extents gathered_grid_;
  numbers gathered_;  // boxes of the first pass
  numbers needed_;    // regions whose tiles are kept
  numbers present_;   // chunks of the source that the first pass found
  std::mutex mutex_;  // of that
};

}  // namespace zarrbits::conversion

#endif
