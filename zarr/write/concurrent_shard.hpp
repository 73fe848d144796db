// SPDX-License-Identifier: BSL-1.0
//
// A shard that several threads fill: chunks may be made in any order, but are written in a fixed order, so that its bytes are the
// same each time.
//
#ifndef ZARRBITS_ZARR_WRITE_CONCURRENT_SHARD_HPP
#define ZARRBITS_ZARR_WRITE_CONCURRENT_SHARD_HPP

#include "zarr/write/shard.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>

namespace zarrbits::zarr {

// One thread assigns turns and closes the shard; any thread may take a turn. A turn waits for those before it, so turns must
// begin in order (thread_pool does this).
class concurrent_shard {
 public:
  concurrent_shard(store_writer& out, std::string key, std::size_t chunks) : writer_(out, std::move(key), chunks) {}

  // Call before the first turn; see shard_writer. Throws zarrbits::error, read_error.
  void begin_with(const io::byte_source& source, std::uint64_t size, std::span<const std::byte> index) {
    writer_.begin_with(source, size, index);
  }
  std::uint64_t next_turn();
  // The last turn of a closed shard completes it and returns its overhead; other turns return 0.
  // Rethrows what `write` throws. After that, or without `write`, the shard is given up and removed.
  std::uint64_t run_turn(std::uint64_t turn, const std::function<void(shard_writer&)>& write);
  // No more turns follow. Returns the same as run_turn().
  std::uint64_t close();

 private:
  bool is_complete() const;
  std::uint64_t commit();

  std::mutex mutex_;
  std::condition_variable turn_changed_;
  shard_writer writer_;
  std::uint64_t turns_ = 0, completed_turns_ = 0;
  bool closed_ = false, failed_ = false;
};

}  // namespace zarrbits::zarr

#endif
