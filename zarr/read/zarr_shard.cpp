// SPDX-License-Identifier: BSL-1.0
#include "zarr/read/zarr_shard.hpp"

#include <algorithm>

namespace zarrbits::zarr {

namespace {

constexpr std::uint64_t max_index_bytes = 1u << 30;
constexpr std::uint64_t max_shard_bytes = 2u << 30;

// A shard inside of bytes-to-bytes codecs, which cannot be read in pieces.
class decoded_shard final : public stored_object {
 public:
  explicit decoded_shard(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

zarr_shard::zarr_shard(std::unique_ptr<stored_object> object, const chunk_decoder& decoder) : object_(std::move(object)) {
  if (decoder.encodes_shards())
    object_ = std::make_shared<decoded_shard>(decoder.decode_shard(read_object(*object_, max_shard_bytes)));
  const std::uint64_t size = decoder.shards()->index_size;
  if (size > object_->size()) throw store_error("a shard is shorter than its index");
  if (size > max_index_bytes) throw not_supported(reason_code::too_large, "an index of a shard that is larger than 1 GiB");
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  object_->read(decoder.shards()->index_at_end ? object_->size() - size : 0, bytes);
  try {
    index_ = decoder.decode_index(std::move(bytes));
  } catch (const store_error& e) {
    throw store_error(std::string("the index of a shard cannot be read: ") + e.what());
  }
}

bool zarr_shard::has_chunk(std::uint64_t chunk) const {
  const std::uint64_t missing = ~std::uint64_t{0};
  return index_[static_cast<std::size_t>(2 * chunk)] != missing || index_[static_cast<std::size_t>(2 * chunk + 1)] != missing;
}

std::pair<std::uint64_t, std::uint64_t> zarr_shard::range(std::uint64_t chunk) const {
  const std::uint64_t offset = index_[static_cast<std::size_t>(2 * chunk)],
                      length = index_[static_cast<std::size_t>(2 * chunk + 1)];
  if (offset > object_->size() || length > object_->size() - offset) throw store_error("it lies outside its shard");
  return {offset, length};
}

}  // namespace zarrbits::zarr
