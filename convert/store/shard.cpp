// SPDX-License-Identifier: BSL-1.0
#include "convert/store/shard.hpp"

#include "convert/checksum.hpp"
#include "convert/store/files.hpp"

#include <zarrbits/convert.hpp>

#include <limits>

namespace zarrbits::conversion {

namespace {

constexpr std::size_t entry_size = 16;
constexpr unsigned checksum_size = 4;

void put_little_endian(std::byte* to, std::uint64_t v, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(v >> (8 * i));
}

}  // namespace

shard_writer::shard_writer(sink& out, std::string key, std::size_t chunks)
    : out_(out), key_(std::move(key)), index_(chunks * entry_size, std::byte{0xFF}) {}

object_writer& shard_writer::open(std::size_t at, std::uint64_t size) {
  if (broken_) throw std::logic_error("a shard goes on after a failure");
  if (at < next_ || at >= index_.size() / entry_size) throw std::logic_error("chunks of a shard come in rising order");
  if (size > std::numeric_limits<std::uint64_t>::max() / 2 - size_) throw convert_error("the shard \"" + key_ + "\" becomes too large");
  if (!object_) object_ = out_.begin(key_);
  return *object_;
}

void shard_writer::add(std::size_t at, std::span<const std::byte> bytes) {
  object_writer& object = open(at, bytes.size());
  broken_ = true;  // until it is written
  object.append(bytes);
  broken_ = false;
  put_little_endian(&index_[at * entry_size], size_, 8);
  put_little_endian(&index_[at * entry_size + 8], bytes.size(), 8);
  size_ += bytes.size();
  next_ = at + 1;
}

void shard_writer::add_range(std::size_t at, int fd, std::uint64_t offset, std::uint64_t size) {
  require_range(fd, offset, size);
  object_writer& object = open(at, size);
  broken_ = true;
  try {
    object.append_range(fd, offset, size);
  } catch (const unreadable_range& e) {
    throw convert_error("the source cannot be read while the shard \"" + key_ + "\" is written: " + e.what() + "; is it still there, and whole?");
  }
  broken_ = false;
  put_little_endian(&index_[at * entry_size], size_, 8);
  put_little_endian(&index_[at * entry_size + 8], size, 8);
  size_ += size;
  next_ = at + 1;
}

std::uint64_t shard_writer::commit() {
  if (broken_) throw std::logic_error("a shard is committed after a failure");
  if (!object_) return 0;
  std::vector<std::byte> index = index_;
  append_crc32c(index);
  object_->append(index);
  object_->commit();
  object_.reset();
  return size_ + index_size();
}

std::uint64_t shard_writer::index_size() const noexcept { return index_.size() + checksum_size; }

nlohmann::ordered_json sharding_codecs(const nlohmann::ordered_json& inner_chunk_shape, const nlohmann::ordered_json& inner_codecs) {
  using json = nlohmann::ordered_json;
  const json bytes = {{"name", "bytes"}, {"configuration", {{"endian", "little"}}}};
  const json crc = {{"name", "crc32c"}};
  return json::array({{{"name", "sharding_indexed"},
                       {"configuration",
                        {{"chunk_shape", inner_chunk_shape},
                         {"codecs", inner_codecs},
                         {"index_codecs", json::array({bytes, crc})},
                         {"index_location", "end"}}}}});
}

}  // namespace zarrbits::conversion
