// SPDX-License-Identifier: BSL-1.0
//
// What a store in one file has, in memory until the file is finished: its members by key, and the journal of the run, which
// is not read later. Thread-safe.
//
//   key_index<zip_member> members;
//   members.add("a/c/0", {.offset = 30, .size = 100});
//   members.for_each_sorted([](const std::string& key, const zip_member& m) { ... });
//
#ifndef ZARRBITS_ZARR_WRITE_KEY_INDEX_HPP
#define ZARRBITS_ZARR_WRITE_KEY_INDEX_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::zarr {

// A member has a `size`.
template <class Member>
class key_index {
 public:
  void add(std::string_view key, Member m) {
    const std::lock_guard lock(mutex_);
    members_.emplace_back(key, std::move(m));
  }
  // If several have the same key, the last one that was added.
  std::optional<Member> find(std::string_view key) const {
    const std::lock_guard lock(mutex_);
    const auto position = std::find_if(members_.rbegin(), members_.rend(), [&](const auto& m) { return m.first == key; });
    return position == members_.rend() ? std::nullopt : std::optional(position->second);
  }

  // The journal: objects that are never members.
  void put_journal(std::string_view key, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    journal_.insert_or_assign(std::string(key), std::vector<std::byte>(bytes.begin(), bytes.end()));
  }
  void append_journal(std::string_view key, std::string_view text) {
    const std::lock_guard lock(mutex_);
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    auto& object = journal_[std::string(key)];
    object.insert(object.end(), bytes.begin(), bytes.end());
  }
  std::optional<std::vector<std::byte>> get_journal(std::string_view key) const {
    const std::lock_guard lock(mutex_);
    const auto entry = journal_.find(key);
    return entry == journal_.end() ? std::nullopt : std::optional(entry->second);
  }

  // Like store_writer::list(), for_each() and remove().
  std::vector<std::string> list(std::string_view folder) const {
    const std::string prefix = prefix_of(folder);
    std::vector<std::string> keys;
    const auto add_all = [&](const auto& entries) {
      for (const auto& [key, content] : entries) {
        if (key.starts_with(prefix)) keys.push_back(key.substr(0, key.find('/', prefix.size())));
      }
    };
    const std::lock_guard lock(mutex_);
    add_all(members_);
    add_all(journal_);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return keys;
  }
  void for_each(std::string_view folder, const std::function<void(std::string_view key, std::uint64_t size)>& callback) const {
    const std::string prefix = prefix_of(folder);
    const std::lock_guard lock(mutex_);
    std::vector<const std::pair<std::string, Member>*> matches;
    for (const auto& m : members_) {
      if (m.first.starts_with(prefix)) matches.push_back(&m);
    }
    std::stable_sort(matches.begin(), matches.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
    for (std::size_t i = 0; i < matches.size(); ++i) {  // the last of those with one key counts
      if (i + 1 == matches.size() || matches[i + 1]->first != matches[i]->first)
        callback(matches[i]->first, matches[i]->second.size);
    }
  }
  void remove(std::string_view folder) {
    if (folder.empty()) return;
    const std::string prefix = prefix_of(folder);
    const std::lock_guard lock(mutex_);
    std::erase_if(members_, [&](const auto& m) { return m.first.starts_with(prefix) || m.first == folder; });
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return members_.size();
  }
  // Removes those of the first `n` members added that have one of these keys.
  void remove_among_first(std::size_t n, const std::set<std::string, std::less<>>& keys) {
    const std::lock_guard lock(mutex_);
    std::size_t index = 0;
    std::erase_if(members_, [&](const auto& m) { return index++ < n && keys.contains(m.first); });
  }

  // All members by key, each key once. By one thread, when no more are added. They are sorted only here: a tree of a million
  // keys takes longer.
  void for_each_sorted(const std::function<void(const std::string& key, const Member& m)>& visit) {
    const auto by_key = [](const auto& a, const auto& b) { return a.first < b.first; };
    if (!std::is_sorted(members_.begin(), members_.end(), by_key)) std::stable_sort(members_.begin(), members_.end(), by_key);
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (i + 1 == members_.size() || members_[i + 1].first != members_[i].first) visit(members_[i].first, members_[i].second);
    }
  }

 private:
  static std::string prefix_of(std::string_view folder) { return folder.empty() ? "" : std::string(folder) + "/"; }

  mutable std::mutex mutex_;
  std::deque<std::pair<std::string, Member>> members_;  // in the order in which they were added
  std::map<std::string, std::vector<std::byte>, std::less<>> journal_;
};

}  // namespace zarrbits::zarr

#endif
