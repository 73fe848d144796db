// SPDX-License-Identifier: BSL-1.0
#include "zarr/write/s3_sink.hpp"

#include "io/files.hpp"
#include "text/node_names.hpp"
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

constexpr std::size_t longest_read = 64 << 20;  // limit for reading back the plan and the journal

}  // namespace

void s3_sink::tally::add(std::string_view key, std::uint64_t size) {
  ++objects;
  bytes += size;
  mixed += std::hash<std::string_view>()(key) * 0x9e3779b97f4a7c15U ^ size * 0xff51afd7ed558ccdU;
}

void s3_sink::tally::subtract(std::string_view key, std::uint64_t size) {
  tally one;
  one.add(key, size);
  objects -= one.objects;
  bytes -= one.bytes;
  mixed -= one.mixed;
}

remote_access for_writing(remote_access remote) {
  remote.no_sign_request = false;
  return remote;
}

s3_sink::s3_sink(const std::string& target, const sink_options& options)
    : client_(io::read_s3_settings(target, for_writing(options.remote))),
      target_(target),
      joined_(joins(options.target)),
      lock_(client_, whole(in_unfinished("")), target, s3_lock::work::conversion) {
  open_target(target, options);
  beat();
}

s3_sink::s3_sink(const std::string& target, const remote_access& remote)
    : client_(io::read_s3_settings(target, for_writing(remote))),
      target_(target),
      joined_(true),
      lock_(client_, whole(in_unfinished("")), target, s3_lock::work::conversion) {}

s3_sink::~s3_sink() {
  lock_.stop();
  if (finished_ || joined_ || !marked_) return;
  try {
    if (!lock_.is_ours()) return;
    if (!kept_) remove_all(true);
    else if (root_size_ > 0) remove_object(whole("zarr.json"));
  } catch (...) {  // the mark still says that the store is unfinished
  }
}

std::string s3_sink::whole(std::string_view key) const {
  if (!key.empty()) check_key(key.ends_with('/') ? key.substr(0, key.size() - 1) : key);
  const std::string& prefix = client_.settings().prefix;
  return prefix.empty() ? std::string(key) : prefix + "/" + std::string(key);
}

void s3_sink::written(std::string_view key, std::uint64_t size) {
  count(key, size);
  if (key.starts_with(std::string(text::unfinished_folder) + "/")) return;
  const std::lock_guard held(tally_mutex_);
  if (key == "zarr.json") root_size_ = size;
  if (joined_) mine_[std::hash<std::string_view>()(key)] = size;
  else tally_.add(key, size);
}

void s3_sink::put(std::string_view key, std::span<const std::byte> bytes) {
  if (key == "zarr.json") require_all_listed();
  if (bytes.size() > 4 * first_part) {
    const auto object = begin(key);
    object->append(bytes);
    return object->commit();
  }
  put_object(client_, whole(key), bytes);
  written(key, bytes.size());
}

class s3_sink::writer final : public object_writer {
 public:
  writer(s3_sink& sink, std::string_view key) : sink_(sink), key_(key), upload_(sink.client_, sink.whole(key)) {}
  void append(std::span<const std::byte> bytes) override { upload_.append(bytes); }
  void commit() override {
    upload_.commit();
    sink_.written(key_, upload_.size());
  }

 private:
  s3_sink& sink_;
  std::string key_;
  s3_upload upload_;
};

std::unique_ptr<object_writer> s3_sink::begin(std::string_view key) { return std::make_unique<writer>(*this, key); }

std::optional<std::vector<std::byte>> s3_sink::get(std::string_view key) {
  const auto answer = client_.send({.key = whole(key), .longest = longest_read});
  if (answer.status == 404) return std::nullopt;
  const auto bytes = std::as_bytes(std::span(answer.body.data(), answer.body.size()));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

std::string s3_sink::text_of(const std::string& key) {
  const auto answer = client_.send({.key = whole(key), .longest = longest_read});
  return answer.status == 404 ? "" : answer.body;
}

std::vector<std::string> s3_sink::list(std::string_view folder) {
  const std::string start = folder.empty() ? whole("") : whole(folder) + "/";
  std::vector<std::string> keys;
  const std::size_t above = whole("").size();
  io::for_each_object(client_, start, true, io::all_of_them, [&](io::s3_entry&& e) {
    e.key.erase(0, above);
    if (e.key.back() == '/') e.key.pop_back();
    const std::string_view leaf = std::string_view(e.key).substr(e.key.rfind('/') + 1);
    if (folder != text::unfinished_folder || (leaf != s3_begun && leaf != text::removing && !leaf.starts_with(s3_alive)))
      keys.push_back(std::move(e.key));
    return true;
  });
  std::sort(keys.begin(), keys.end());
  return keys;
}

void s3_sink::each(std::string_view folder, const std::function<void(std::string_view key, std::uint64_t size)>& found) {
  const std::size_t above = whole("").size();
  io::for_each_object(client_, folder.empty() ? whole("") : whole(folder) + "/", false, io::all_of_them, [&](io::s3_entry&& e) {
    if (e.key.size() > above) found(std::string_view(e.key).substr(above), e.size);
    return true;
  });
}

void s3_sink::append(std::string_view key, std::string_view text) {
  char number[24];
  std::snprintf(number, sizeof number, "%08llu", static_cast<unsigned long long>(next_line_++));
  put_object(client_, whole(std::string(key) + "-" + lock_.token() + "-" + number),
             std::as_bytes(std::span(text.data(), text.size())));
}

void s3_sink::remove_object(const std::string& whole_key) { client_.send({.method = "DELETE", .key = whole_key}); }

void s3_sink::remove(std::string_view folder) {
  if (folder.empty()) return;
  for (const io::s3_entry& e : io::list_objects(client_, whole(folder) + "/", false, io::all_of_them)) {
    remove_object(e.key);
    const std::lock_guard held(tally_mutex_);
    const std::string_view key = std::string_view(e.key).substr(whole("").size());
    if (joined_) mine_.erase(std::hash<std::string_view>()(key));
    else tally_.subtract(key, e.size);
  }
}

// Removes zarr.json files first, outermost before inner ones, so that no reader takes the rest for a store. The mark goes last,
// or stays.
void s3_sink::remove_all(bool mark_too) {
  remove_object(whole("zarr.json"));  // whether it is listed or not
  std::vector<std::string> keys;
  for (io::s3_entry& e : io::list_objects(client_, whole(""), false, io::all_of_them)) keys.push_back(std::move(e.key));
  const auto late = std::stable_partition(keys.begin(), keys.end(), text::is_node_key);
  std::sort(keys.begin(), late, [](const std::string& a, const std::string& b) { return a.size() < b.size(); });
  const std::string begun = whole(in_unfinished(s3_begun)), old = whole(in_unfinished(text::removing));
  for (const std::string& key : keys) {
    if (key != begun && key != old) remove_object(key);
  }
  if (mark_too) {
    for (const std::string& key : {old, begun}) remove_object(key);
  }
}

// Called before the root's zarr.json makes this a store. The server must list what was written and, if no other run wrote,
// nothing else. The journals of other runs name their objects.
void s3_sink::require_all_listed() {
  if (!joined_ && !lock_.is_ours()) throw lock_.taken();
  const std::size_t above = whole("").size();
  const std::string unfinished = in_unfinished("");
  tally there;
  std::size_t mine_there = 0;
  // some servers list an object shortly after it was written
  for (int attempt = 0; attempt < 4; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::duration<double>(s3_lock_seconds() / 60 * attempt));
    there = {};
    mine_there = 0;
    io::for_each_object(client_, whole(""), false, io::all_of_them, [&](io::s3_entry&& e) {
      const std::string_view key = std::string_view(e.key).substr(above);
      if (key.starts_with(unfinished)) return true;
      const auto own = joined_ ? mine_.find(std::hash<std::string_view>()(key)) : mine_.end();
      if (own != mine_.end() && own->second == e.size) ++mine_there;
      there.add(key, e.size);
      return true;
    });
    const std::lock_guard held(tally_mutex_);
    if (joined_ ? mine_there == mine_.size() : there == tally_) return;
  }
  if (joined_) {
    throw zarrbits::error(errc::server_failed,
                          "the S3 server lists only " + std::to_string(mine_there) + " of the " + std::to_string(mine_.size()) +
                              " objects that were written to \"" + target_ +
                              "\" just now; convert again with `resume`, and find out what else writes there",
                          {target_});
  }
  throw zarrbits::error(errc::server_failed,
                        "the S3 server lists other objects in \"" + target_ +
                            "\" than were written: " + std::to_string(there.objects) + " of " + std::to_string(there.bytes) +
                            " bytes, not " + std::to_string(tally_.objects) + " of " + std::to_string(tally_.bytes) +
                            "; convert again, and find out what else writes there",
                        {target_});
}

void s3_sink::finish() {
  lock_.stop();
  if (root_size_ > 0) {
    const auto root = client_.send({.method = "HEAD", .key = whole("zarr.json")});
    if (root.status == 404 || root.length != static_cast<long long>(root_size_)) {
      throw zarrbits::error(errc::server_failed,
                            "the S3 server does not have \"" + whole("zarr.json") + "\" as it was written; convert again",
                            {target_});
    }
  }
  // from here on the store is complete, whatever happens
  remove_object(whole(in_unfinished(text::plan_name)));
  finished_ = true;
  const std::string begun = whole(in_unfinished(s3_begun));
  for (const io::s3_entry& e : io::list_objects(client_, whole(in_unfinished("")), false, io::all_of_them)) {
    if (e.key != begun) remove_object(e.key);
  }
  remove_object(begun);
}

// What an append has made stays for the next one, which need not wait for it.
void s3_sink::release_append(std::string_view run) {
  const std::string mark = std::string(text::append_folder) + "/" + s3_begun;
  if (s3_is_mark_of(text_of(mark), run)) remove_object(whole(mark));
}

bool s3_sink::remove_unfinished(const std::string& target, const sink_options& options) {
  try {
    s3_sink sink(target, options.remote);
    if (!options.run.empty()) sink.release_append(options.run);
    const auto unfinished = io::list_objects(sink.client_, sink.whole(in_unfinished("")), false, io::all_of_them);
    if (unfinished.empty()) return false;
    if (options.run.empty()) {
      sink.lock_.require_idle(unfinished);
      if (!sink.has_own_note()) return false;
    } else if (!s3_is_mark_of(sink.text_of(in_unfinished(s3_begun)), options.run)) {
      return false;
    }
    sink.remove_all(true);
    return true;
  } catch (const zarrbits::error&) {
    return false;
  }
}

}  // namespace zarrbits::zarr
