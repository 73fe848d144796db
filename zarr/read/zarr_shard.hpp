// SPDX-License-Identifier: BSL-1.0
//
// One shard of a store, read a chunk at a time, so that it may be larger than the memory.
//
#ifndef ZARRBITS_ZARR_READ_ZARR_SHARD_HPP
#define ZARRBITS_ZARR_READ_ZARR_SHARD_HPP

#include "zarr/read/chunk_decoder.hpp"
#include "zarr/read/store_reader.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace zarrbits::zarr {

class zarr_shard {
 public:
  // Reads the index. Throws store_error if it is damaged or does not fit.
  zarr_shard(std::unique_ptr<stored_object> object, const chunk_decoder& decoder);

  std::uint64_t chunks() const noexcept { return index_.size() / 2; }
  // `chunk`: index in C order.
  bool has_chunk(std::uint64_t chunk) const;
  // Where the bytes of a chunk are for which has_chunk() is true: offset and size, within object(). Throws store_error.
  std::pair<std::uint64_t, std::uint64_t> range(std::uint64_t chunk) const;
  // The shard without codecs around it.
  const std::shared_ptr<const stored_object>& object() const noexcept { return object_; }

 private:
  std::shared_ptr<const stored_object> object_;
  std::vector<std::uint64_t> index_;  // offset and length of each chunk; all ones if absent
};

}  // namespace zarrbits::zarr

#endif
