// SPDX-License-Identifier: BSL-1.0
//
// Shards: many encoded chunks in one object, with an index at its end (Zarr's codec sharding_indexed).
//
//   shard_writer shard(out, "a/c/0", 64);     // 64 chunks, in C order of the grid inside the shard
//   shard.add(3, chunk);                      // rising numbers; the chunks left out are missing
//   shard.add_range(4, fd, offset, sizes);    // bytes of the source's file
//   shard.commit();                           // without a chunk there is no object
//
#ifndef ZARRBITS_ZARR_WRITE_SHARD_HPP
#define ZARRBITS_ZARR_WRITE_SHARD_HPP

#include "io/byte_source.hpp"
#include "zarr/write/store_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::zarr {

// The bytes depend only on the chunks, and for ranges on their offsets; not on when, and by which thread, they were added.
class shard_writer {
 public:
  shard_writer(store_writer& out, std::string key, std::size_t chunks);

  // Call before the first chunk. The shard begins with so many bytes of this one, which has the chunks of the index of an earlier
  // shard. Added chunks replace those.
  void begin_with(const io::byte_source& source, std::uint64_t size, std::span<const std::byte> index);
  // Chunk number `index`, greater than all before. Throws what the store writer throws; then the shard cannot be committed.
  void add(std::size_t index, std::span<const std::byte> bytes);
  // Chunks `index`, `index` + 1 and so on, which are contiguous in a file.
  // Throws read_error before it writes anything if the file is shorter; the chunks are then missing, and the shard
  // continues. Throws it later too if the file changes in the meantime; the shard then cannot be committed.
  void add_range(std::size_t index, int fd, std::uint64_t offset, std::span<const std::uint64_t> sizes);
  // A range of this size is aligned in the shard as in its file, after a gap if needed: add such a chunk alone.
  static constexpr std::uint64_t worth_a_gap = 128 << 10;

  bool empty() const noexcept { return object_ == nullptr; }
  std::uint64_t overhead() const noexcept {
    return overhead_;
  }  // bytes of the object outside of chunks: its index, and gaps before ranges
  // Writes the index. Returns the object's size; 0 without an object.
  std::uint64_t commit();

 private:
  object_writer& open(std::size_t index, std::size_t chunks, std::uint64_t size);
  void set_entry(std::size_t index, std::uint64_t size);

  store_writer& out_;
  std::string key_;
  std::unique_ptr<object_writer> object_;
  std::vector<std::byte> index_;  // offset and size of each chunk; all bits set if it is missing
  std::uint64_t overhead_;
  std::uint64_t size_ = 0;
  std::size_t next_ = 0;
  bool broken_ = false;
};

}  // namespace zarrbits::zarr

#endif
