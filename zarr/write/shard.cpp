// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/shard.hpp"

#include "compressors/crc32c.hpp"
#include "io/files.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

namespace zarrbits::zarr {

namespace {

constexpr std::size_t entry_size = 16;
constexpr unsigned checksum_size = 4;
constexpr std::uint64_t max_piece_bytes = 8 << 20;  // of a shard on a server

// Ranges of files get the same offset within a page as in their file: the kernel then copies whole pages, and file systems that
// share blocks need not copy. A gap is at most 3 % of such a range. Ranges that are contiguous in the file need none.
constexpr std::uint64_t page = 4096;
constexpr std::byte gap[page] = {};

void put_little_endian(std::byte* out, std::uint64_t v, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(v >> (8 * i));
}

}  // namespace

shard_writer::shard_writer(store_writer& out, std::string key, std::size_t chunks)
    : out_(out), key_(std::move(key)), index_(chunks * entry_size, std::byte{0xFF}), overhead_(index_.size() + checksum_size) {}

object_writer& shard_writer::open(std::size_t index, std::size_t chunks, std::uint64_t size) {
  if (broken_) throw std::logic_error("a shard continues after a failure");
  const std::size_t chunk_count = index_.size() / entry_size;
  if (index < next_ || index >= chunk_count || chunks > chunk_count - index)
    throw std::logic_error("chunks of a shard come in rising order");
  if (size > std::numeric_limits<std::uint64_t>::max() / 2 - size_)
    throw zarrbits::error(errc::unsupported, "the shard \"" + key_ + "\" becomes too large", {key_});
  if (!object_) object_ = out_.begin(key_);
  return *object_;
}

void shard_writer::set_entry(std::size_t index, std::uint64_t size) {
  put_little_endian(&index_[index * entry_size], size_, 8);
  put_little_endian(&index_[index * entry_size + 8], size, 8);
  size_ += size;
  next_ = index + 1;
}

void shard_writer::begin_with(const io::byte_source& source, std::uint64_t size, std::span<const std::byte> index) {
  if (object_ || broken_ || index.size() != index_.size()) throw std::logic_error("a shard begins with another one");
  const int fd = source.descriptor();
  if (fd >= 0) io::require_range(fd, 0, size);
  broken_ = true;
  object_ = out_.begin(key_);
  if (fd >= 0) {
    object_->append_range(fd, 0, size);
  } else {
    std::vector<std::byte> piece;
    for (std::uint64_t offset = 0; offset < size; offset += piece.size()) {
      piece.resize(static_cast<std::size_t>(std::min(size - offset, max_piece_bytes)));
      source.read(offset, piece);
      object_->append(piece);
    }
  }
  broken_ = false;
  index_.assign(index.begin(), index.end());
  size_ = size;
  overhead_ += size;
}

void shard_writer::add(std::size_t index, std::span<const std::byte> bytes) {
  object_writer& object = open(index, 1, bytes.size());
  broken_ = true;  // until it is written
  object.append(bytes);
  broken_ = false;
  set_entry(index, bytes.size());
}

void shard_writer::add_range(std::size_t index, int fd, std::uint64_t offset, std::span<const std::uint64_t> sizes) {
  const std::uint64_t size = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  io::require_range(fd, offset, size);
  const std::uint64_t padding = !sizes.empty() && sizes[0] >= worth_a_gap ? (offset - size_) % page : 0;
  object_writer& object = open(index, sizes.size(), padding + size);
  broken_ = true;
  object.append(std::span(gap).first(static_cast<std::size_t>(padding)));
  size_ += padding;
  overhead_ += padding;
  object.append_range(fd, offset, size);
  broken_ = false;
  for (const std::uint64_t one : sizes) set_entry(index++, one);
}

std::uint64_t shard_writer::commit() {
  if (broken_) throw std::logic_error("a shard is committed after a failure");
  if (!object_) return 0;
  compressors::buffer index(index_.begin(), index_.end());
  compressors::append_crc32c(index);
  object_->append(index);
  object_->commit();
  object_.reset();
  return size_ + index.size();
}

}  // namespace zarrbits::zarr
