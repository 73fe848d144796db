// SPDX-License-Identifier: BSL-1.0
#include "zarr/read/store_reader.hpp"

#include "remote/remote_object.hpp"
#include "remote/s3_listing.hpp"
#include "zarr/read/sorted_keys.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <utility>

namespace zarrbits::zarr {

namespace {

// Turns the client's errors, which are the converter's, into errors of the store.
template <class F>
auto with_s3_errors(F&& f) {
  try {
    return f();
  } catch (const zarrbits::error& e) {
    throw store_error(e.what(), e.kind());
  }
}

io::file_state state_in_s3(std::uint64_t size, const std::string& validator) {
  return {.regular = true, .size = size, .etag = validator};
}

class s3_object final : public stored_object {
 public:
  // `validator`: only this state of it is read; "": any of this size.
  s3_object(remote::s3_client& client, std::string key, std::uint64_t size, std::string validator)
      : client_(client), key_(std::move(key)), size_(size), validator_(std::move(validator)) {}
  std::uint64_t size() const override { return size_; }
  io::file_state state() const override { return state_in_s3(size_, validator_); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    try {
      const auto object = remote::find_object(client_, key_);
      io::file_state expected = state();
      if (validator_.empty()) {
        expected = object->current_state();
        if (expected.size != size_) throw_changed();
      }
      while (!out.empty()) {
        const auto piece = out.first(std::min(out.size(), max_request_bytes));
        object->read(expected, offset, piece);
        offset += piece.size();
        out = out.subspan(piece.size());
      }
    } catch (const zarrbits::error& e) {
      if (e.kind() == errc::changed) throw_changed();
      throw store_error(e.what(), e.kind());
    }
  }

 private:
  [[noreturn]] void throw_changed() const {
    throw store_error("\"" + key_ + "\" was changed while the store was read", errc::changed);
  }

  static constexpr std::size_t max_request_bytes = 32U << 20;
  remote::s3_client& client_;
  std::string key_;
  std::uint64_t size_;
  std::string validator_;
};

class s3_reader final : public store_reader {
 public:
  s3_reader(const std::string& name, const remote_access& remote) : client_(remote::read_s3_settings(name, remote)) {}

  std::unique_ptr<stored_object> open(const std::string& key) const override {
    const io::file_state state = with_s3_errors([&] { return remote::find_object(client_, full_key(key))->current_state(); });
    if (!state.regular) return nullptr;
    return std::make_unique<s3_object>(client_, full_key(key), state.size, state.etag);
  }

  void list(const std::string& folder, const std::function<bool(const store_entry&)>& visit) const override {
    std::string start = full_key(folder);
    if (!start.empty()) start += '/';
    with_s3_errors([&] {
      remote::for_each_object(client_, start, true, remote::no_limit, [&](remote::s3_entry&& object) {
        store_entry e;
        e.name = object.key.substr(start.size());
        e.is_folder = e.name.back() == '/';
        if (e.is_folder) e.name.pop_back();
        e.size = object.size;
        if (!e.is_folder) e.state = state_in_s3(object.size, remote::s3_validator(object.etag, object.modified));
        return visit(e);
      });
    });
  }

 private:
  std::string full_key(const std::string& key) const {
    const std::string& prefix = client_.settings().prefix;
    return prefix.empty() || key.empty() ? prefix + key : prefix + "/" + key;
  }

  mutable remote::s3_client client_;  // thread-safe
};

// One listing says what there is, and how long it is. What is read is kept: small objects (all metadata are) as long as the
// reader, others while there is room. Large objects come in blocks: the chunks of a shard lie close together.
class s3_snapshot final : public store_reader {
 public:
  // `memory`: limit of the list.
  s3_snapshot(const std::string& name, const remote_access& remote, std::uint64_t memory)
      : client_(remote::read_s3_settings(name, remote)) {
    const std::string& prefix = client_.settings().prefix;
    const std::string start = prefix.empty() ? "" : prefix + "/";
    const std::uint64_t limit = std::max(memory, min_list_bytes);
    std::uint64_t list_bytes = 0;
    with_s3_errors([&] {
      remote::for_each_object(client_, start, false, remote::no_limit, [&](remote::s3_entry&& e) {
        if (e.key.size() <= start.size()) return true;
        list_bytes += entry_bytes + e.key.size();
        if (list_bytes > limit) {
          throw zarrbits::error(errc::refused,
                                "\"" + name + "\" has more than " + std::to_string(objects_.size()) +
                                    " objects, and their list takes more memory than is allowed; increase `memory`",
                                {name});
        }
        objects_.emplace(e.key.substr(start.size()), listed_object{e.size, remote::s3_validator(e.etag, e.modified)});
        return true;
      });
    });
  }

  std::unique_ptr<stored_object> open(const std::string& key) const override {
    const auto entry = objects_.find(key);
    if (entry == objects_.end()) return nullptr;
    return std::make_unique<object>(*this, key, entry->second);
  }

  void list(const std::string& folder, const std::function<bool(const store_entry&)>& visit) const override {
    list_sorted(
        objects_, folder, [](const listed_object& l) { return state_in_s3(l.size, l.validator); }, visit);
  }

 private:
  struct listed_object {
    std::uint64_t size = 0;
    std::string validator;
  };
  using bytes = std::shared_ptr<const std::vector<std::byte>>;
  static constexpr std::uint64_t min_list_bytes = 256U << 20, entry_bytes = 200;  // with what a map takes for an entry
  static constexpr std::uint64_t small = 64U << 10, block = 16U << 20, cache_capacity = 64U << 20;

  class object final : public stored_object {
   public:
    object(const s3_snapshot& store, std::string key, const listed_object& entry)
        : store_(store), key_(std::move(key)), entry_(entry) {}
    std::uint64_t size() const override { return entry_.size; }
    io::file_state state() const override { return state_in_s3(entry_.size, entry_.validator); }
    std::optional<object_location> location() const override {
      return object_location{.url = store_.url_of(key_), .state = state()};
    }
    void read(std::uint64_t offset, std::span<std::byte> out) const override {
      while (!out.empty()) {
        const std::uint64_t begin = offset % block;
        std::size_t size = std::min<std::size_t>(out.size(), block - begin);
        if (begin == 0 && out.size() > block) {  // whole blocks that no other read will ask for
          size = out.size() - out.size() % block;
          s3_object(store_.client_, store_.full_key(key_), entry_.size, entry_.validator).read(offset, out.first(size));
        } else {
          const bytes cached = store_.block_of(key_, offset - begin, entry_);
          std::copy_n(cached->begin() + static_cast<std::ptrdiff_t>(begin), size, out.begin());
        }
        offset += size;
        out = out.subspan(size);
      }
    }

   private:
    const s3_snapshot& store_;
    std::string key_;
    listed_object entry_;
  };

  std::string full_key(const std::string& key) const {
    const std::string& prefix = client_.settings().prefix;
    return prefix.empty() ? key : prefix + "/" + key;
  }

  std::string url_of(const std::string& key) const { return client_.settings().name_of(full_key(key)); }

  // The block that begins at `offset`.
  bytes block_of(const std::string& key, std::uint64_t offset, const listed_object& of) const {
    const std::uint64_t size = of.size;
    const std::lock_guard lock(mutex_);
    if (const auto small_object = small_objects_.find(key); small_object != small_objects_.end()) return small_object->second;
    const std::pair place(key, offset);
    const auto is_same_block = [&](const auto& r) { return r.first == place; };
    if (const auto recent = std::find_if(recent_.begin(), recent_.end(), is_same_block); recent != recent_.end()) {
      recent_.splice(recent_.begin(), recent_, recent);
      return recent->second;
    }
    auto read = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(std::min(size - offset, block)));
    s3_object(client_, full_key(key), size, of.validator).read(offset, *read);
    if (size <= small && small_bytes_ < cache_capacity) {
      small_bytes_ += size + key.size();
      return small_objects_.emplace(key, std::move(read)).first->second;
    }
    recent_bytes_ += read->size();
    recent_.emplace_front(place, std::move(read));
    while (recent_bytes_ > cache_capacity && recent_.size() > 1) {
      recent_bytes_ -= recent_.back().second->size();
      recent_.pop_back();
    }
    return recent_.front().second;
  }

  mutable remote::s3_client client_;  // thread-safe
  std::map<std::string, listed_object> objects_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, bytes> small_objects_;
  mutable std::list<std::pair<std::pair<std::string, std::uint64_t>, bytes>> recent_;  // by key and offset; the last used first
  mutable std::uint64_t small_bytes_ = 0, recent_bytes_ = 0;
};

}  // namespace

std::shared_ptr<const store_reader> open_s3(const std::string& name, const remote_access& remote, std::uint64_t memory,
                                            access_pattern use) {
  return with_s3_errors([&]() -> std::shared_ptr<const store_reader> {
    if (use != access_pattern::sparse) return std::make_shared<s3_snapshot>(name, remote, memory);
    return std::make_shared<s3_reader>(name, remote);
  });
}

}  // namespace zarrbits::zarr
