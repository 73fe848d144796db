// SPDX-License-Identifier: BSL-1.0
#include "zarr/read/store_reader.hpp"

#include "io/s3_listing.hpp"
#include "io/s3_objects.hpp"
#include "zarr/read/sorted_keys.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace zarrbits::verification {

namespace {

// Turns the client's errors, which are the converter's, into errors of the store.
template <class F>
auto asked(F&& f) {
  try {
    return f();
  } catch (const zarrbits::error& e) {
    throw store_error(e.what(), e.kind());
  }
}

class s3_object final : public stored_object {
 public:
  // `first`: where it begins in what is under the key.
  s3_object(conversion::s3_client& client, std::string key, std::uint64_t size, std::uint64_t first = 0)
      : client_(client), key_(std::move(key)), size_(size), first_(first) {}
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!asked([&] { return conversion::read_from_s3(client_, key_, first_ + offset, out); }))
      throw store_error("the S3 server does not return all of \"" + key_ +
                        "\": it was changed, or the server does not support ranges");
  }

 private:
  conversion::s3_client& client_;
  std::string key_;
  std::uint64_t size_, first_;
};

class s3_reader final : public store_reader {
 public:
  s3_reader(const std::string& name, const std::string& endpoint) : client_(conversion::read_s3_settings(name, endpoint)) {}

  std::unique_ptr<stored_object> open(const std::string& key) const override {
    const auto answer = asked([&] { return client_.send({.method = "HEAD", .key = whole(key)}); });
    if (answer.status == 404) return nullptr;
    if (answer.length < 0) throw store_error("the S3 server does not say how long \"" + whole(key) + "\" is");
    return std::make_unique<s3_object>(client_, whole(key), static_cast<std::uint64_t>(answer.length));
  }

  void list(const std::string& folder, const std::function<bool(const store_entry&)>& each) const override {
    std::string start = whole(folder);
    if (!start.empty()) start += '/';
    asked([&] {
      conversion::for_each_object(client_, start, true, conversion::all_of_them, [&](conversion::s3_entry&& found) {
        store_entry e;
        e.name = found.key.substr(start.size());
        e.is_folder = e.name.back() == '/';
        if (e.is_folder) e.name.pop_back();
        e.size = found.size;
        return each(e);
      });
    });
  }

 private:
  std::string whole(const std::string& key) const {
    const std::string& prefix = client_.settings().prefix;
    return prefix.empty() || key.empty() ? prefix + key : prefix + "/" + key;
  }

  mutable conversion::s3_client client_;  // thread-safe
};

// One listing says what there is, and how long it is. What is read is kept: small objects (all metadata are) as long as the
// reader, others while there is room.
class s3_snapshot final : public store_reader {
 public:
  s3_snapshot(const std::string& name, const std::string& endpoint) : client_(conversion::read_s3_settings(name, endpoint)) {
    const std::string& prefix = client_.settings().prefix;
    const std::string start = prefix.empty() ? "" : prefix + "/";
    asked([&] {
      conversion::for_each_object(client_, start, false, conversion::all_of_them, [&](conversion::s3_entry&& e) {
        if (e.key.size() > start.size()) objects_.emplace(e.key.substr(start.size()), listed{e.size});
        return true;
      });
    });
  }

  std::unique_ptr<stored_object> open(const std::string& key) const override {
    const auto found = objects_.find(key);
    if (found == objects_.end()) return nullptr;
    return std::make_unique<object>(*this, key, found->second.size);
  }

  void list(const std::string& folder, const std::function<bool(const store_entry&)>& each) const override {
    list_sorted(objects_, folder, each);
  }

 private:
  struct listed {
    std::uint64_t size = 0;
  };
  using bytes = std::shared_ptr<const std::vector<std::byte>>;
  static constexpr std::uint64_t small = 64U << 10, large = 16U << 20, room = 64U << 20;

  class object final : public stored_object {
   public:
    object(const s3_snapshot& store, std::string key, std::uint64_t size) : store_(store), key_(std::move(key)), size_(size) {}
    std::uint64_t size() const override { return size_; }
    void read(std::uint64_t offset, std::span<std::byte> out) const override {
      if (out.empty()) return;
      if (size_ > large) return s3_object(store_.client_, store_.whole(key_), size_).read(offset, out);
      const bytes all = store_.all_of(key_, size_);
      std::copy_n(all->begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    }

   private:
    const s3_snapshot& store_;
    std::string key_;
    std::uint64_t size_;
  };

  std::string whole(const std::string& key) const {
    const std::string& prefix = client_.settings().prefix;
    return prefix.empty() ? key : prefix + "/" + key;
  }

  bytes all_of(const std::string& key, std::uint64_t size) const {
    const std::lock_guard held(turn_);
    if (const auto found = kept_.find(key); found != kept_.end()) return found->second;
    const auto same = [&](const auto& r) { return r.first == key; };
    if (const auto found = std::find_if(recent_.begin(), recent_.end(), same); found != recent_.end()) {
      recent_.splice(recent_.begin(), recent_, found);
      return found->second;
    }
    auto read = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(size));
    s3_object(client_, whole(key), size).read(0, *read);
    if (size <= small && kept_bytes_ < room) {
      kept_bytes_ += size + key.size();
      return kept_.emplace(key, std::move(read)).first->second;
    }
    recent_bytes_ += size;
    recent_.emplace_front(key, std::move(read));
    while (recent_bytes_ > room && recent_.size() > 1) {
      recent_bytes_ -= recent_.back().second->size();
      recent_.pop_back();
    }
    return recent_.front().second;
  }

  mutable conversion::s3_client client_;  // thread-safe
  std::map<std::string, listed> objects_;
  mutable std::mutex turn_;
  mutable std::map<std::string, bytes> kept_;
  mutable std::list<std::pair<std::string, bytes>> recent_;  // the last one used first
  mutable std::uint64_t kept_bytes_ = 0, recent_bytes_ = 0;
};

// Asks for the state of each object once.
class objects_of_sources final : public s3_files {
 public:
  explicit objects_of_sources(const std::string& endpoint) : objects_(endpoint) {}

  std::unique_ptr<stored_object> range(const std::string& url, const std::optional<conversion::file_state>& as_it_was,
                                       std::uint64_t offset, std::uint64_t size) override {
    const std::lock_guard held(turn_);
    auto at = known_.find(url);
    if (at == known_.end()) at = known_.emplace(url, asked([&] { return objects_.state_of(url); })).first;
    const conversion::file_state& there = at->second;
    if (!there.regular) throw store_error("the references point to \"" + url + "\", which is not there", errc::not_found);
    if (as_it_was && *as_it_was != there)
      throw store_error("\"" + url + "\" has changed since the references were made; make them again", errc::changed);
    if (size > there.size || offset > there.size - size)
      throw store_error("a reference points beyond the end of \"" + url + "\"");
    const auto [client, key] = asked([&] { return objects_.find(url); });
    return std::make_unique<s3_object>(*client, key, size, offset);
  }

 private:
  std::mutex turn_;
  conversion::s3_objects objects_;
  std::map<std::string, conversion::file_state> known_;
};

}  // namespace

std::unique_ptr<s3_files> open_s3_files(const std::string& endpoint) { return std::make_unique<objects_of_sources>(endpoint); }

std::shared_ptr<const store_reader> open_s3(const std::string& name, const std::string& endpoint, use_of_store use) {
  return asked([&]() -> std::shared_ptr<const store_reader> {
    if (use == use_of_store::all_of_it) return std::make_shared<s3_snapshot>(name, endpoint);
    return std::make_shared<s3_reader>(name, endpoint);
  });
}

}  // namespace zarrbits::verification
