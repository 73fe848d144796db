// SPDX-License-Identifier: BSL-1.0
#include "verify/zarr/store_reader.hpp"

#include "convert/io/s3_listing.hpp"

#include <zarrbits/convert.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace zarrbits::verification {

namespace {

constexpr std::uint64_t most_at_once = 32u << 20;  // one request has its whole answer in memory

// Turns the client's errors, which are the converter's, into errors of the store.
template <class F>
auto asked(F&& f) {
  try {
    return f();
  } catch (const convert_error& e) {
    throw store_error(e.what());
  }
}

class s3_object final : public stored_object {
 public:
  // `first`: where it begins in what is under the key.
  s3_object(conversion::s3_client& client, std::string key, std::uint64_t size, std::uint64_t first = 0)
      : client_(client), key_(std::move(key)), size_(size), first_(first) {}
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    offset += first_;
    while (!out.empty()) {
      const auto piece = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), most_at_once)));
      const std::string range = std::to_string(offset) + "-" + std::to_string(offset + piece.size() - 1);
      const auto answer = asked([&] { return client_.send({.key = key_, .range = range, .longest = piece.size()}); });
      if (answer.body.size() != piece.size())
        throw store_error("the S3 server does not give all of \"" + key_ + "\": it was changed, or the server knows no ranges");
      std::memcpy(piece.data(), answer.body.data(), piece.size());
      offset += piece.size();
      out = out.subspan(piece.size());
    }
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

// One client for each bucket, and one question for each object.
class objects_of_sources final : public s3_files {
 public:
  explicit objects_of_sources(std::string endpoint) : endpoint_(std::move(endpoint)) {}

  std::unique_ptr<stored_object> range(const std::string& url, const state& as_it_was, std::uint64_t offset,
                                       std::uint64_t size) override {
    const std::lock_guard held(turn_);
    auto at = known_.find(url);
    if (at == known_.end()) at = known_.emplace(url, asked([&] { return look(url); })).first;
    const known& there = at->second;
    if (as_it_was && *as_it_was != std::pair{there.size, there.etag})
      throw store_error("\"" + url + "\" has changed since the references were made; make them anew");
    if (size > there.size || offset > there.size - size) throw store_error("a reference leads behind the end of \"" + url + "\"");
    return std::make_unique<s3_object>(*there.client, there.key, size, offset);
  }

 private:
  struct known {
    conversion::s3_client* client;
    std::string key;
    std::uint64_t size;
    std::string etag;
  };
  known look(const std::string& url) {
    conversion::s3_settings settings = conversion::read_s3_settings(url, endpoint_);
    std::string key = settings.prefix;
    auto& client = clients_[settings.bucket];
    if (!client) client = std::make_unique<conversion::s3_client>(std::move(settings));
    const auto answer = client->send({.method = "HEAD", .key = key});
    if (answer.status == 404 || answer.length < 0)
      throw store_error("the references lead to \"" + url + "\", which is not there");
    return {client.get(), std::move(key), static_cast<std::uint64_t>(answer.length), answer.etag};
  }

  std::string endpoint_;
  std::mutex turn_;
  std::map<std::string, std::unique_ptr<conversion::s3_client>> clients_;  // by bucket
  std::map<std::string, known> known_;
};

}  // namespace

std::unique_ptr<s3_files> open_s3_files(const std::string& endpoint) { return std::make_unique<objects_of_sources>(endpoint); }

std::shared_ptr<const store_reader> open_s3(const std::string& name, const std::string& endpoint) {
  return asked([&] { return std::make_shared<s3_reader>(name, endpoint); });
}

}  // namespace zarrbits::verification
