// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/concurrent_shard.hpp"

namespace zarrbits::zarr {

std::uint64_t concurrent_shard::next_turn() {
  const std::lock_guard held(mutex_);
  return turns_++;
}

std::uint64_t concurrent_shard::take(std::uint64_t turn, const std::function<void(shard_writer&)>& write) {
  {
    std::unique_lock held(mutex_);
    taken_.wait(held, [&] { return done_ == turn; });
  }
  // this is the only turn now: no other thread uses the writer, so no lock is needed
  const auto over = [&](bool written) {
    const std::lock_guard held(mutex_);
    given_up_ = given_up_ || !written;
    ++done_;
    taken_.notify_all();
    return is_whole();
  };
  bool whole = false;
  try {
    const bool wanted = write && !given_up_;
    if (wanted) write(writer_);
    whole = over(wanted);
  } catch (...) {
    over(false);
    throw;
  }
  return whole ? commit() : 0;
}

std::uint64_t concurrent_shard::close() {
  bool whole = false;
  {
    const std::lock_guard held(mutex_);
    closed_ = true;
    whole = is_whole();
  }
  return whole ? commit() : 0;
}

// Returns true once: for the last turn, or for close().
bool concurrent_shard::is_whole() const { return closed_ && done_ == turns_ && !given_up_; }

std::uint64_t concurrent_shard::commit() { return writer_.commit() > 0 ? writer_.overhead() : 0; }

}  // namespace zarrbits::zarr
