// SPDX-License-Identifier: BSL-1.0
#include "reader/chunk_cache.hpp"

namespace zarrbits::reader {

chunk_cache::chunk chunk_cache::find(const key& k) {
  const std::lock_guard guard(mutex_);
  const auto position = index_.find(k);
  if (position == index_.end()) return {};
  recent_.splice(recent_.begin(), recent_, position->second);
  return position->second->second;
}

bool chunk_cache::contains(const key& k) {
  const std::lock_guard guard(mutex_);
  return index_.contains(k);
}

void chunk_cache::insert(const key& k, chunk c) {
  const std::uint64_t size = c->size();
  if (size > max_bytes_) return;
  const std::lock_guard guard(mutex_);
  if (index_.contains(k)) return;  // another thread has decoded it, too
  recent_.emplace_front(k, std::move(c));
  index_[k] = recent_.begin();
  bytes_ += size;
  while (bytes_ > max_bytes_) {
    bytes_ -= recent_.back().second->size();
    index_.erase(recent_.back().first);
    recent_.pop_back();
  }
}

}  // namespace zarrbits::reader
