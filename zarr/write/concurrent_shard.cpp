// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/concurrent_shard.hpp"

namespace zarrbits::zarr {

std::uint64_t concurrent_shard::next_turn() {
  const std::lock_guard lock(mutex_);
  return turns_++;
}

std::uint64_t concurrent_shard::run_turn(std::uint64_t turn, const std::function<void(shard_writer&)>& write) {
  {
    std::unique_lock lock(mutex_);
    turn_changed_.wait(lock, [&] { return completed_turns_ == turn; });
  }
  // this is the only turn now: no other thread uses the writer, so no lock is needed
  const auto over = [&](bool written) {
    const std::lock_guard guard(mutex_);
    failed_ = failed_ || !written;
    ++completed_turns_;
    turn_changed_.notify_all();
    return is_complete();
  };
  bool is_last = false;
  try {
    const bool can_write = write && !failed_;
    if (can_write) write(writer_);
    is_last = over(can_write);
  } catch (...) {
    over(false);
    throw;
  }
  return is_last ? commit() : 0;
}

std::uint64_t concurrent_shard::close() {
  bool is_last = false;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    is_last = is_complete();
  }
  return is_last ? commit() : 0;
}

// Returns true once: for the last turn, or for close().
bool concurrent_shard::is_complete() const { return closed_ && completed_turns_ == turns_ && !failed_; }

std::uint64_t concurrent_shard::commit() { return writer_.commit() > 0 ? writer_.overhead() : 0; }

}  // namespace zarrbits::zarr
