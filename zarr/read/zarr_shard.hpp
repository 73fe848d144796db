// SPDX-License-Identifier: BSL-1.0
//
// One shard of a store, read a chunk at a time, so that it may be larger than the memory.
//
#ifndef ZARRBITS_ZARR_READ_ZARR_SHARD_HPP
#define ZARRBITS_ZARR_READ_ZARR_SHARD_HPP

#include "zarr/read/store_reader.hpp"
#include "zarr/read/zarr_codecs.hpp"

#include <memory>
#include <vector>

namespace zarrbits::verification {

class zarr_shard {
 public:
  // Reads the index. Throws store_error if it is damaged or does not fit.
  zarr_shard(std::unique_ptr<stored_object> object, const codec_chain& codecs);

  std::uint64_t chunks() const noexcept { return index_.size() / 2; }
  // `chunk`: index in C order.
  bool has(std::uint64_t chunk) const;
  // The stored bytes of a chunk for which has() is true.
  std::vector<std::byte> read(std::uint64_t chunk) const;

 private:
  std::unique_ptr<stored_object> object_;
  std::vector<std::uint64_t> index_;  // offset and length of each chunk; all ones: there is none
};

}  // namespace zarrbits::verification

#endif
