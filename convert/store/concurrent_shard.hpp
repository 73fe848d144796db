// SPDX-License-Identifier: BSL-1.0
//
// A shard that several threads fill: chunks may be made in any order, but are written in theirs, so that its bytes are the same
// each time.
//
#ifndef ZARRBITS_CONVERT_STORE_CONCURRENT_SHARD_HPP
#define ZARRBITS_CONVERT_STORE_CONCURRENT_SHARD_HPP

#include "convert/store/shard.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>

namespace zarrbits::conversion {

// One thread hands out turns and closes the shard; each turn is taken by some thread. A turn waits for those before it, so they
// have to be begun in order (work_queue does).
class concurrent_shard {
 public:
  concurrent_shard(sink& out, std::string key, std::size_t chunks) : writer_(out, std::move(key), chunks) {}

  // Before the first turn: as shard_writer has it. Throws convert_error, unreadable_range.
  void begin_with(int fd, std::uint64_t size, std::span<const std::byte> index) { writer_.begin_with(fd, size, index); }
  std::uint64_t next_turn();
  // Where it is the last one and the shard is closed, the shard becomes whole: returns its overhead, and 0 otherwise.
  // Throws what `write` throws; then, or without `write`, the shard is given up: nothing is left of it.
  std::uint64_t take(std::uint64_t turn, const std::function<void(shard_writer&)>& write);
  // No turns follow. Returns as take() does.
  std::uint64_t close();

 private:
  bool is_whole() const;
  std::uint64_t commit();

  std::mutex mutex_;
  std::condition_variable taken_;
  shard_writer writer_;
  std::uint64_t turns_ = 0, done_ = 0;
  bool closed_ = false, given_up_ = false;
};

}  // namespace zarrbits::conversion

#endif
