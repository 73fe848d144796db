// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/s3_writer.hpp"

#include "io/files.hpp"
#include "metadata/v2_metadata.hpp"
#include "text/reserved_names.hpp"
#include "zarr/write/s3_lock.hpp"
#include "zarr/write/s3_upload.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>

namespace zarrbits::zarr {

namespace {

constexpr std::size_t max_read_bytes = 64 << 20;  // limit for reading back the plan and the journal

}  // namespace

void s3_writer::tally::add(std::string_view key, std::uint64_t size) {
  ++objects;
  bytes += size;
  hash += std::hash<std::string_view>()(key) * 0x9e3779b97f4a7c15U ^ size * 0xff51afd7ed558ccdU;
}

void s3_writer::tally::subtract(std::string_view key, std::uint64_t size) {
  tally one;
  one.add(key, size);
  objects -= one.objects;
  bytes -= one.bytes;
  hash -= one.hash;
}

s3_writer::s3_writer(const std::string& target, const store_writer_options& options)
    : client_(remote::read_s3_target(target, options.remote)),
      target_(target),
      joined_(attaches(options.target)),
      lock_(client_, full_key(unfinished_key("")), target, s3_lock::work::conversion) {
  open_target(target, options);
  start_heartbeat();
}

s3_writer::s3_writer(const std::string& target, const remote_access& remote)
    : client_(remote::read_s3_target(target, remote)),
      target_(target),
      joined_(true),
      lock_(client_, full_key(unfinished_key("")), target, s3_lock::work::conversion) {}

s3_writer::~s3_writer() {
  lock_.stop();
  if (finished_) return;
  try {
    if (!joined_ && marked_ && lock_.is_owner()) {
      if (!keep_unfinished_) remove_all(true);
      else if (!root_key_.empty()) remove_root();
    }
    // the next run need not wait before it goes on
    if (is_exclusive_ && (joined_ || keep_unfinished_)) lock_.release();
    else if (is_shared_) lock_.remove_sign_of_life();
  } catch (...) {  // the mark still says that the store is unfinished, and the next run waits
  }
}

std::string s3_writer::full_key(std::string_view key) const {
  if (!key.empty()) check_key(key.ends_with('/') ? key.substr(0, key.size() - 1) : key);
  const std::string& prefix = client_.settings().prefix;
  return prefix.empty() ? std::string(key) : prefix + "/" + std::string(key);
}

void s3_writer::record_write(std::string_view key, std::uint64_t size) {
  count(key, size);
  if (key.starts_with(std::string(text::unfinished_folder) + "/")) return;
  const std::lock_guard lock(tally_mutex_);
  if (metadata::completes_store(key)) {
    root_key_ = key;
    root_size_ = size;
  }
  if (joined_) own_sizes_[std::hash<std::string_view>()(key)] = size;
  else tally_.add(key, size);
}

void s3_writer::put(std::string_view key, std::span<const std::byte> bytes) {
  if (metadata::completes_store(key)) require_all_listed();
  if (bytes.size() > 4 * first_part) {
    const auto object = begin(key);
    object->append(bytes);
    return object->commit();
  }
  put_object(client_, full_key(key), bytes);
  record_write(key, bytes.size());
}

class s3_writer::writer final : public object_writer {
 public:
  writer(s3_writer& sink, std::string_view key) : store_(sink), key_(key), upload_(sink.client_, sink.full_key(key)) {}
  void append(std::span<const std::byte> bytes) override { upload_.append(bytes); }
  void commit() override {
    upload_.commit();
    store_.record_write(key_, upload_.size());
  }

 private:
  s3_writer& store_;
  std::string key_;
  s3_upload upload_;
};

std::unique_ptr<object_writer> s3_writer::begin(std::string_view key) { return std::make_unique<writer>(*this, key); }

std::optional<std::vector<std::byte>> s3_writer::get(std::string_view key) {
  const auto response = client_.send({.key = full_key(key), .max_body_bytes = max_read_bytes});
  if (response.status == 404) return std::nullopt;
  const auto bytes = std::as_bytes(std::span(response.body.data(), response.body.size()));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

std::string s3_writer::read_text(const std::string& key) {
  const auto response = client_.send({.key = full_key(key), .max_body_bytes = max_read_bytes});
  return response.status == 404 ? "" : response.body;
}

std::vector<std::string> s3_writer::list(std::string_view folder) {
  const std::string start = folder.empty() ? full_key("") : full_key(folder) + "/";
  std::vector<std::string> keys;
  const std::size_t prefix_size = full_key("").size();
  remote::for_each_object(client_, start, true, remote::no_limit, [&](remote::s3_entry&& e) {
    e.key.erase(0, prefix_size);
    if (e.key.back() == '/') e.key.pop_back();
    const std::string_view leaf = std::string_view(e.key).substr(e.key.rfind('/') + 1);
    if (folder != text::unfinished_folder || (leaf != s3_begun && leaf != text::removal_marker && !leaf.starts_with(s3_alive)))
      keys.push_back(std::move(e.key));
    return true;
  });
  std::sort(keys.begin(), keys.end());
  return keys;
}

void s3_writer::for_each(std::string_view folder, const std::function<void(std::string_view key, std::uint64_t size)>& callback) {
  const std::size_t prefix_size = full_key("").size();
  remote::for_each_object(client_, folder.empty() ? full_key("") : full_key(folder) + "/", false, remote::no_limit,
                          [&](remote::s3_entry&& e) {
    if (e.key.size() > prefix_size) callback(std::string_view(e.key).substr(prefix_size), e.size);
    return true;
  });
}

void s3_writer::append(std::string_view key, std::string_view text) {
  char number[24];
  std::snprintf(number, sizeof number, "%08llu", static_cast<unsigned long long>(next_line_++));
  put_object(client_, full_key(std::string(key) + "-" + lock_.token() + "-" + number),
             std::as_bytes(std::span(text.data(), text.size())));
}

void s3_writer::remove_object(const std::string& whole_key) { client_.send({.method = "DELETE", .key = whole_key}); }

void s3_writer::remove(std::string_view folder) {
  if (folder.empty()) return;
  for (const remote::s3_entry& e : remote::list_objects(client_, full_key(folder) + "/", false, remote::no_limit)) {
    remove_object(e.key);
    const std::lock_guard lock(tally_mutex_);
    const std::string_view key = std::string_view(e.key).substr(full_key("").size());
    if (joined_) own_sizes_.erase(std::hash<std::string_view>()(key));
    else tally_.subtract(key, e.size);
  }
}

// Those of runs that were killed. Call with the lock, and before this run has uploads of its own.
void s3_writer::abort_old_uploads() {
  const std::string& prefix = client_.settings().prefix;
  remote::abort_uploads(client_, prefix.empty() ? "" : prefix + "/", [](const std::string&, const std::string&) { return true; });
}

// For a run that shares the target: only if no other run shows that it is alive, and those that a run which has just begun cannot
// have.
void s3_writer::abort_stale_uploads(const std::vector<remote::s3_entry>& unfinished) {
  try {
    lock_.require_idle(unfinished);
  } catch (const zarrbits::error& e) {
    if (e.kind() == errc::busy) return;
    throw;
  }
  const std::string& prefix = client_.settings().prefix;
  const auto server_time = remote::seconds_of(client_.send({.method = "HEAD", .key = lock_.mark_key()}).date);
  remote::abort_uploads(client_, prefix.empty() ? "" : prefix + "/", [&](const std::string&, const std::string& initiated) {
    const auto time = remote::seconds_of(initiated);
    return server_time && time && *server_time - *time >= s3_lock_seconds();
  });
}

// Whether they are listed or not.
void s3_writer::remove_root() {
  for (const char* key : metadata::root_keys) remove_object(full_key(key));
}

// Removes metadata first, outermost before inner ones, so that no reader takes the rest for a store. The mark goes last, or
// stays.
void s3_writer::remove_all(bool mark_too) {
  remove_root();
  abort_old_uploads();
  std::vector<std::string> keys;
  for (remote::s3_entry& e : remote::list_objects(client_, full_key(""), false, remote::no_limit))
    keys.push_back(std::move(e.key));
  const auto late = std::stable_partition(keys.begin(), keys.end(), metadata::is_metadata_key);
  std::sort(keys.begin(), late, [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  const std::string begun = full_key(unfinished_key(s3_begun)), removing_key = full_key(unfinished_key(text::removal_marker));
  for (const std::string& key : keys) {
    if (key != begun && key != removing_key) remove_object(key);
  }
  if (mark_too) {
    for (const std::string& key : {removing_key, begun}) remove_object(key);
  }
}

// Called before the root's metadata make this a store. The server must list what was written and, if no other run wrote,
// nothing else. The journals of other runs name their objects.
void s3_writer::require_all_listed() {
  if (!joined_ && !lock_.is_owner()) throw lock_.busy_error();
  const std::size_t prefix_size = full_key("").size();
  const std::string unfinished = unfinished_key("");
  tally listed;
  std::size_t mine_there = 0;
  // some servers list an object shortly after it was written
  for (int attempt = 0; attempt < 4; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::duration<double>(s3_lock_seconds() / 60 * attempt));
    listed = {};
    mine_there = 0;
    remote::for_each_object(client_, full_key(""), false, remote::no_limit, [&](remote::s3_entry&& e) {
      const std::string_view key = std::string_view(e.key).substr(prefix_size);
      if (key.starts_with(unfinished)) return true;
      const auto own_entry = joined_ ? own_sizes_.find(std::hash<std::string_view>()(key)) : own_sizes_.end();
      if (own_entry != own_sizes_.end() && own_entry->second == e.size) ++mine_there;
      listed.add(key, e.size);
      return true;
    });
    const std::lock_guard lock(tally_mutex_);
    if (joined_ ? mine_there == own_sizes_.size() : listed == tally_) return;
  }
  if (joined_) {
    throw zarrbits::error(errc::server_failed,
                          client_.settings().server_name() + " lists only " + std::to_string(mine_there) + " of the " +
                              std::to_string(own_sizes_.size()) + " objects that were written to \"" + target_ +
                              "\" just now; convert again with `resume`, and find out what else writes there",
                          {target_});
  }
  throw zarrbits::error(errc::server_failed,
                        client_.settings().server_name() + " lists other objects in \"" + target_ +
                            "\" than were written: " + std::to_string(listed.objects) + " of " + std::to_string(listed.bytes) +
                            " bytes, not " + std::to_string(tally_.objects) + " of " + std::to_string(tally_.bytes) +
                            "; convert again, and find out what else writes there",
                        {target_});
}

void s3_writer::finish() {
  lock_.stop();
  if (!root_key_.empty()) {
    const auto root = client_.send({.method = "HEAD", .key = full_key(root_key_)});
    if (root.status == 404 || root.length != static_cast<long long>(root_size_)) {
      throw zarrbits::error(
          errc::server_failed,
          client_.settings().server_name() + " does not have \"" + full_key(root_key_) + "\" as it was written; convert again",
          {target_});
    }
  }
  // from here on the store is complete, whatever happens
  remove_object(full_key(unfinished_key(text::plan_name)));
  finished_ = true;
  const std::string begun = full_key(unfinished_key(s3_begun));
  for (const remote::s3_entry& e : remote::list_objects(client_, full_key(unfinished_key("")), false, remote::no_limit)) {
    if (e.key != begun) remove_object(e.key);
  }
  remove_object(begun);
}

// What an append has made stays for the next one, which need not wait for it.
void s3_writer::release_append(std::string_view run) {
  const std::string mark = std::string(text::append_folder) + "/" + s3_begun;
  if (s3_is_mark_of(read_text(mark), run)) remove_object(full_key(mark));
}

void s3_writer::release(const std::string& target, const store_writer_options& options) {
  s3_writer(target, options.remote).lock_.release(options.run);
}

bool s3_writer::remove_unfinished(const std::string& target, const store_writer_options& options) {
  try {
    s3_writer sink(target, options.remote);
    if (!options.run.empty()) sink.release_append(options.run);
    const auto unfinished = remote::list_objects(sink.client_, sink.full_key(unfinished_key("")), false, remote::no_limit);
    if (unfinished.empty()) return false;
    if (options.run.empty()) {
      sink.lock_.require_idle(unfinished);
      if (!sink.has_own_note()) return false;
    } else if (!s3_is_mark_of(sink.read_text(unfinished_key(s3_begun)), options.run)) {
      return false;
    }
    sink.lock_.share();
    sink.remove_all(true);
    return true;
  } catch (const zarrbits::error&) {
    return false;
  }
}

}  // namespace zarrbits::zarr
