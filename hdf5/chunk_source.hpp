// SPDX-License-Identifier: BSL-1.0
//
// Where the chunks of an array come from: one HDF5 dataset (source_dataset.hpp), the sources of a virtual dataset
// (virtual_dataset.hpp), or the datasets of several files. It finds and reads them; what they become is decided elsewhere.
//
//   const std::unique_ptr<chunk_source> data = open_dataset(file, object);
//   data->use_grid(grid, array::shards_of(grid), false);
//   data->visit_stored(0, data->shards.chunks(), [&](const array::extents& at, std::optional<std::uint64_t> size) {
//     const stored_chunk chunk = data->find_chunk(data->grid.start(at), *size);
//     ...
//   });
//
#ifndef ZARRBITS_HDF5_CHUNK_SOURCE_HPP
#define ZARRBITS_HDF5_CHUNK_SOURCE_HPP

#include "array/chunk_grid.hpp"
#include "hdf5/opened_dataset.hpp"
#include "hdf5/unsupported_dataset.hpp"
#include "hdf5/vlen_allocator.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zarrbits::io {
class byte_source;
}

namespace zarrbits::hdf5 {

// The number of a source's own file, among those that chunks may lie in: see chunk_source::bytes_of().
constexpr std::size_t no_file = static_cast<std::size_t>(-1);

// The stored bytes of a chunk, or their place in a file; and its filter mask.
struct stored_chunk {
  std::optional<std::uint64_t> offset = {};
  compressors::buffer bytes = {};
  unsigned mask = 0;
  std::size_t file = no_file;  // the file of the offset
};

// The chunks of an array of several datasets, without those that a growing store has, and how many are stored chunks of a
// dataset; and the elements of both.
struct reused_chunks {
  std::uint64_t chunks = 0, reused = 0, elements = 0, reused_elements = 0;
};

// What describes it (type, extent, filters) is that of the array; of several datasets, `dataset` and `object` are the first.
class chunk_source : public opened_dataset {
 public:
  using chunk_visitor = std::function<bool(const array::extents& index)>;
  using part_visitor = std::function<void(const array::box& part)>;
  using stored_visitor = std::function<bool(const array::extents& index, std::optional<std::uint64_t> size)>;

  explicit chunk_source(opened_dataset opened) : opened_dataset(std::move(opened)) {}
  virtual ~chunk_source() = default;
  chunk_source(const chunk_source&) = delete;
  chunk_source& operator=(const chunk_source&) = delete;

  // The grid of the array made from it, and its shards. `rechunked`: the source has other chunks, or none.
  void use_grid(array::chunk_grid chunks, array::chunk_grid of_shards, bool rechunked);
  array::chunk_grid grid, shards;
  bool rechunked() const { return rechunked_; }
  bool sharded() const { return shards.chunk_elements() > 1; }

  // The shape of the stored chunks that may be chunks of the array; empty if none may be. Throws unsupported_dataset.
  virtual array::extents chunk_shape() const;
  // True if stored chunks are, with their filters, chunks of the array: all of them, or some.
  virtual bool can_reuse_chunks() const { return layout == H5D_CHUNKED && !rechunked(); }
  // For a source of several datasets: the rectilinear grid whose chunks end where theirs do, but for the last one of each, which
  // ends with the dataset. The argument: the grid that the array would have otherwise.
  virtual std::optional<array::chunk_grid> grid_of_parts(const array::chunk_grid&) const { return {}; }
  virtual reused_chunks reuse_on(const array::chunk_grid&) const { return {}; }
  // True if a chunk may have to be put together from several datasets.
  virtual bool is_composite() const { return false; }
  // False if there are few chunks in a grid that is far too large to walk.
  virtual bool can_be_walked() const;
  virtual bool nothing_stored() const;
  // Upper limit of the chunks that are stored.
  virtual std::uint64_t max_stored_chunks() const { return nothing_stored() ? 0 : grid.chunks(); }

  // Visits the chunks of these shards, until `visit` returns false: each stored chunk with its size, each chunk to assemble from
  // several parts with nothing. Returns the number of skipped chunks, which a growing store already has. Call it only if the
  // source keeps chunks. The caller holds lock, or is alone. Throws failure.
  virtual std::uint64_t visit_stored(std::uint64_t first, std::uint64_t count, const stored_visitor& visit) const = 0;
  // Visits all chunks of these shards or, if skips_empty(), those that may have values. Returns the number of the others.
  virtual std::uint64_t visit_all(std::uint64_t first, std::uint64_t count, const chunk_visitor& visit) const;
  virtual bool skips_empty() const { return false; }

  // A chunk that was visited with this size, by its first element. Throws failure, corrupt_chunk. The caller holds lock,
  // or is alone.
  virtual stored_chunk find_chunk(const array::extents& first, std::uint64_t size) const = 0;
  // True if a chunk may lie on a server.
  virtual bool is_remote() const { return bytes->remote() != nullptr; }
  // The bytes of the file that a chunk lies in. Callable from any thread. Throws zarrbits::error.
  virtual std::shared_ptr<const io::byte_source> bytes_of(std::size_t file) const;
  // Throws zarrbits::error if a file has changed from which chunks of these shards are copied, and that no other code checks.
  // Callable from any thread.
  virtual void require_unchanged(std::uint64_t first, std::uint64_t count) const {
    static_cast<void>(first);
    static_cast<void>(count);
  }

  // Reads a block, in the type `memory` with `size` bytes for each element, into the corner of an array of extent `out_shape`, or
  // to `corner` in it. Strings and sequences go to `strings`. Throws failure, corrupt_chunk, unsupported_dataset.
  void read_block(hid_t memory, std::size_t size, const array::extents& first, const array::extents& count,
                  const array::extents& out_shape, compressors::buffer& out, vlen_allocator* strings = nullptr,
                  const array::extents& corner = {}) const;
  // Visits the parts of a block that lie in one stored chunk each; none if the source has other storage. Throws failure.
  virtual void for_each_stored_part(const array::box&, const part_visitor&) const {}
  // Offset of the values in the file of `bytes`, if they are one range that can be read without libhdf5.
  virtual std::optional<std::uint64_t> contiguous_address() const { return {}; }
  // Adds up the bytes of strings and sequences read. Throws unsupported_dataset if they are far too many for the size of the
  // file.
  void count_variable(std::uint64_t read) const;
  // True if the memory type changes values of this chunk.
  bool is_chunk_lossy(const array::extents& index) const;

  // The axis along which more files may follow; nothing of a single file.
  virtual std::optional<std::size_t> growing_axis() const { return {}; }
  // Some elements are in no file, and read as fill value.
  virtual bool has_gaps() const { return false; }
  // For a growing array: the whole chunk, or a part of it, is in the store.
  virtual bool is_in_store(const array::extents&) const { return false; }
  virtual bool overlaps_stored_part(const array::extents&) const { return false; }

 protected:
  virtual void read_values(hid_t memory, std::size_t size, const array::extents& first, const array::extents& count,
                           const array::extents& out_shape, compressors::buffer& out, vlen_allocator* strings,
                           const array::extents& corner) const = 0;

 private:
  bool rechunked_ = false;
  mutable std::atomic<std::uint64_t> variable_bytes_ = 0;
};

}  // namespace zarrbits::hdf5

#endif
