// SPDX-License-Identifier: BSL-1.0
//
// Decoded chunks that were last used, for boxes smaller than a chunk.
//
#ifndef ZARRBITS_READER_CHUNK_CACHE_HPP
#define ZARRBITS_READER_CHUNK_CACHE_HPP

#include "compressors/buffer.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace zarrbits::reader {

// Thread-safe.
class chunk_cache {
 public:
  using key = std::pair<std::uint64_t, std::uint64_t>;  // address of the dataset, number of the chunk
  using chunk = std::shared_ptr<const compressors::buffer>;

  explicit chunk_cache(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}
  // Null if it is not in the cache.
  chunk find(const key& k);
  bool contains(const key& k);
  // Larger chunks than the cache are not stored.
  void insert(const key& k, chunk c);

 private:
  using entry = std::pair<key, chunk>;

  const std::uint64_t max_bytes_;
  std::mutex mutex_;
  std::uint64_t bytes_ = 0;
  std::list<entry> recent_;  // the last used one first
  std::map<key, std::list<entry>::iterator> index_;
};

}  // namespace zarrbits::reader

#endif
