// SPDX-License-Identifier: BSL-1.0
//
// An append to a store in S3. Nothing can be renamed there: the server copies the new chunks to their places, each in one step,
// and a zarr.json is replaced by a conditional PUT, on the ETag of the one that was checked.
//
#include "append/staged_append.hpp"

#include "io/files.hpp"
#include "remote/s3_client.hpp"
#include "remote/s3_listing.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"
#include "zarr/write/s3_lock.hpp"
#include "zarr/write/s3_upload.hpp"
#include "zarr/write/s3_writer.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace zarrbits::append {

namespace {

// Calls `use` for each, several at a time. Rethrows the first exception, when all calls have ended.
template <class T, class Use>
void for_each_parallel(const std::vector<T>& items, unsigned threads, const Use& use) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failed;
  const auto work = [&] {
    for (std::size_t i = next++; i < items.size(); i = next++) {
      try {
        use(items[i]);
      } catch (...) {
        next = items.size();
        const std::lock_guard lock(mutex);
        if (!failed) failed = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    try {
      for (std::size_t i = 1; i < std::min<std::size_t>(threads, items.size()); ++i) workers.emplace_back(work);
    } catch (...) {  // the system has no more threads, or no memory for one; fewer do it, too
    }
    work();
  }
  if (failed) std::rethrow_exception(failed);
}

class s3_append final : public staged_append {
 public:
  s3_append(const std::string& store, const zarr::store_writer_options& options);
  ~s3_append() override;

  std::string folder() const override { return store() + "/" + text::append_folder + "/" + staged_store; }
  bool is_complete() const override { return is_complete_; }
  void remove_from_store(const std::vector<std::string>& keys) override;
  void discard() override;

 private:
  std::string store_key(const std::string& key) const { return root_ + key; }
  std::string staged_key(const std::string& key) const { return lock_.folder() + staged_store + "/" + key; }
  std::string list_key() const { return lock_.folder() + declared_list; }
  void take_lock();
  void require_lock();
  remote::s3_client::response get(const std::string& whole_key);
  std::string text_of(const std::string& whole_key);
  std::vector<remote::s3_entry> staged_chunks();
  void remove(const std::vector<std::string>& whole_keys);
  [[noreturn]] void fail_list(const std::string& listed, const std::string& written) const;
  template <class F>
  void as_part_of_the_move(F&& step);

  std::string store_text(const std::string& key) override { return text_of(store_key(key)); }
  std::string staged_text(const std::string& key) override { return text_of(staged_key(key)); }
  std::string list() override;
  void put_list(const std::string& text, std::uint64_t chunk_bytes) override;
  void remove_list() override;
  void move_chunks() override;
  void move_metadata(const replaced_metadata& metadata) override;
  bool replace(const replaced_metadata& metadata, remote::retry_policy& tries);

  remote::s3_client client_;
  const std::string root_;  // "" or "prefix/"
  const unsigned connections_;
  std::string declared_chunks_;
  std::atomic<std::uint64_t> moved_ = 0;
  bool is_complete_ = false;
  zarr::s3_lock lock_;  // declared last: its heartbeat uses the others
};

std::string folder_in(const remote::s3_client& client) {
  const std::string& prefix = client.settings().prefix;
  return prefix.empty() ? "" : prefix + "/";
}

s3_append::s3_append(const std::string& store, const zarr::store_writer_options& options)
    : staged_append(store),
      client_(remote::read_s3_target(store, options.remote)),
      root_(folder_in(client_)),
      connections_(std::max(1U, options.remote.connections)),
      lock_(client_, root_ + text::append_folder + "/", store, zarr::s3_lock::work::append) {
  const auto exists = [&](const char* key) { return client_.send({.method = "HEAD", .key = store_key(key)}).status != 404; };
  if (!exists("zarr.json")) refuse_store(exists(".zgroup") || exists(".zarray"));
  lock_.set_run(options.run, true);
  take_lock();
  try {
    is_complete_ = client_.send({.method = "HEAD", .key = list_key()}).status != 404;
  } catch (...) {
    lock_.release();
    throw;
  }
  lock_.start_heartbeat([this] { return moved_.load(); });
}

// The work of a run that was killed stays as it is, with its lock, which is old after a while.
void s3_append::take_lock() {
  const auto objects = remote::list_objects(client_, lock_.folder(), false, remote::no_limit);
  const bool is_held =
      std::any_of(objects.begin(), objects.end(), [&](const remote::s3_entry& e) { return e.key == lock_.mark_key(); });
  if (is_held) lock_.require_idle(objects);
  if (lock_.acquire(is_held) && lock_.supports_if_match()) return;
  lock_.release();
  throw zarrbits::error(errc::unsupported,
                        "nothing can be appended to \"" + store() + "\": " + client_.settings().server_name() + " at " +
                            client_.settings().url +
                            " does not support conditional writes; make the store again from all "
                            "files with `concat`",
                        {store()});
}

s3_append::~s3_append() {
  lock_.stop();
  try {
    if (!lock_.is_owner()) return;
    if (!is_complete_) discard();
  } catch (...) {  // the next run tries again
  }
  try {
    lock_.release();
  } catch (...) {  // it is old after a while
  }
}

void s3_append::require_lock() {
  if (!lock_.is_owner()) throw lock_.busy_error();
}

remote::s3_client::response s3_append::get(const std::string& whole_key) {
  return client_.send({.key = whole_key, .max_body_bytes = io::max_read_back});
}

std::string s3_append::text_of(const std::string& whole_key) {
  auto response = get(whole_key);
  return response.status == 404 ? "" : std::move(response.body);
}

std::vector<remote::s3_entry> s3_append::staged_chunks() {
  auto chunks = remote::list_objects(client_, staged_key(""), false, remote::no_limit);
  const std::string unfinished = staged_key(zarr::unfinished_key(""));  // of a server that did not remove it
  std::erase_if(chunks, [&](const remote::s3_entry& e) { return text::is_node_key(e.key) || e.key.starts_with(unfinished); });
  return chunks;
}

void s3_append::remove(const std::vector<std::string>& whole_keys) {
  for_each_parallel(whole_keys, connections_, [&](const std::string& key) {
    client_.send({.method = "DELETE", .key = key});
    ++moved_;
  });
}

void s3_append::remove_from_store(const std::vector<std::string>& keys) {
  std::set<std::string> unwanted, folders;
  for (const std::string& key : keys) unwanted.insert(store_key(key));
  for (const remote::s3_entry& e : keys.empty() ? std::vector<remote::s3_entry>() : staged_chunks())
    unwanted.erase(store_key(e.key.substr(staged_key("").size())));
  for (const std::string& key : unwanted) folders.insert(key.substr(0, key.rfind('/') + 1));
  std::mutex mutex;
  std::vector<std::string> existing;
  for_each_parallel(std::vector<std::string>(folders.begin(), folders.end()), connections_, [&](const std::string& folder) {
    remote::for_each_object(client_, folder, true, remote::no_limit, [&](remote::s3_entry&& e) {
      const std::lock_guard lock(mutex);
      if (unwanted.contains(e.key)) existing.push_back(std::move(e.key));
      return true;
    });
  });
  remove(existing);
}

void s3_append::discard() {
  remote::abort_uploads(client_, lock_.folder(), [](const std::string&, const std::string&) { return true; });
  std::vector<std::string> keys;
  for (remote::s3_entry& e : remote::list_objects(client_, lock_.folder(), false, remote::no_limit)) {
    const std::string_view leaf = std::string_view(e.key).substr(lock_.folder().size());
    if (leaf == declared_list) remove_list();  // first: no process may rely on the objects that go with it
    else if (leaf != zarr::s3_begun && leaf != zarr::s3_alive + lock_.token()) keys.push_back(std::move(e.key));
  }
  remove(keys);
}

struct tally {
  std::uint64_t objects = 0, bytes = 0;
  std::string text() const { return text::json_text({{"objects", objects}, {"bytes", bytes}}); }
};

tally tally_of(const std::vector<remote::s3_entry>& chunks) {
  tally total{chunks.size(), 0};
  for (const remote::s3_entry& e : chunks) total.bytes += e.size;
  return total;
}

// Its second line has the tally.
std::string s3_append::list() {
  const std::string text = text_of(list_key());
  const std::size_t end = std::min(text.find('\n'), text.size());
  declared_chunks_ = text.substr(std::min(end + 1, text.size()));
  return text.substr(0, end);
}

void s3_append::put_list(const std::string& text, std::uint64_t chunk_bytes) {
  require_lock();
  const tally listed = tally_of(staged_chunks());
  if (listed.bytes != chunk_bytes) fail_list(listed.text(), std::to_string(chunk_bytes) + " bytes");
  const std::string content = text + listed.text();
  zarr::put_object(client_, list_key(), std::as_bytes(std::span(content.data(), content.size())));
  is_complete_ = true;
}

void s3_append::remove_list() {
  as_part_of_the_move([&] { client_.send({.method = "DELETE", .key = list_key()}); });
  is_complete_ = false;
}

template <class F>
void s3_append::as_part_of_the_move(F&& step) {
  try {
    step();
  } catch (const zarrbits::error& e) {
    throw zarrbits::error(
        e.kind(),
        std::string(e.what()) + ". The next run continues where this one stopped; until then, arrays may differ in length",
        e.place());
  }
}

void s3_append::move_chunks() {
  require_lock();
  std::vector<remote::s3_entry> chunks;
  as_part_of_the_move([&] { chunks = staged_chunks(); });
  if (const std::string listed = tally_of(chunks).text(); listed != declared_chunks_) {
    remove_list();
    fail_list(listed, declared_chunks_.substr(0, 100));
  }
  // a run that was killed in the move may have left some for the same places
  std::set<std::string> places;
  const std::size_t prefix_size = staged_key("").size();
  for (const remote::s3_entry& e : chunks) places.insert(store_key(e.key.substr(prefix_size)));
  remote::abort_uploads(client_, root_, [&](const std::string& key, const std::string&) { return places.contains(key); });
  as_part_of_the_move([&] {
    for_each_parallel(chunks, connections_, [&](const remote::s3_entry& e) {
      zarr::copy_object(client_, e.key, store_key(e.key.substr(prefix_size)), e.size);
      ++moved_;
    });
  });
  require_lock();
}

// The new chunks cannot be relied on: they are rewritten. The store is as before, but for objects that no reader looks for.
void s3_append::fail_list(const std::string& listed, const std::string& written) const {
  throw zarrbits::error(errc::server_failed,
                        client_.settings().server_name() + " lists other new chunks for \"" + store() +
                            "\" than were written: " + listed + ", not " + written +
                            "; nothing was appended: run the same command again, and find out what else writes there",
                        {store()});
}

void s3_append::move_metadata(const replaced_metadata& metadata) {
  remote::retry_policy tries;
  while (!replace(metadata, tries)) {
  }
}

// False if the condition failed: then a further look shows why.
bool s3_append::replace(const replaced_metadata& metadata, remote::retry_policy& tries) {
  const std::string key = store_key(metadata.key);
  remote::s3_client::response existing;
  std::string text;
  bool replaced = false;
  as_part_of_the_move([&] { existing = get(key); });
  const std::string current = existing.status == 404 ? "" : checksum_of_text(existing.body);
  if (current == metadata.new_checksum) return true;
  if (current != metadata.old_checksum) refuse_changed(metadata.key);
  as_part_of_the_move([&] { text = staged_text(metadata.key); });
  if (checksum_of_text(text) != metadata.new_checksum) refuse("the new \"" + metadata.key + "\" is not as it was written");
  as_part_of_the_move([&] {
    const auto stored = client_.store({.method = "PUT",
                                       .key = key,
                                       .body = std::as_bytes(std::span(text.data(), text.size())),
                                       .only_if = client_.if_unchanged(existing)});
    // not in time, or of a lost attempt that replaced it, or of another program
    const bool failed = stored.status == 404 || stored.status == 409 || stored.status == 412;
    const std::string reason = std::to_string(stored.status) + " from " + client_.settings().url;
    if ((!failed && stored.status >= 300) || (failed && !tries.wait(reason)))
      throw zarrbits::error(
          errc::server_failed,
          client_.settings().server_name() + " does not replace \"" + key + "\": it answers " + std::to_string(stored.status),
          {store()});
    replaced = !failed;
    if (replaced && text_of(key) != text)
      throw zarrbits::error(errc::server_failed,
                            client_.settings().server_name() + " does not have \"" + key + "\" as it was written", {store()});
  });
  return replaced;
}

}  // namespace

std::unique_ptr<staged_append> append_in_s3(std::string store, const zarr::store_writer_options& options) {
  return std::make_unique<s3_append>(store, options);
}

}  // namespace zarrbits::append
