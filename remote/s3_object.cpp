// SPDX-License-Identifier: BSL-1.0
#include "remote/remote_object.hpp"

#include "remote/s3_client.hpp"
#include "remote/s3_version.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace zarrbits::remote {

namespace {

class object_in_s3 final : public remote_object {
 public:
  object_in_s3(const std::string& name, const remote_access& remote) : object_in_s3(name, read_s3_settings(name, remote)) {}

  io::file_state open(std::span<std::byte> head) override {
    const auto response = client_.send({.key = key_, .query = version_, .range = {0, head.size()}, .output = head});
    if (response.status == 404) throw_not_found();
    if (response.status == 416) return current_state();
    io::file_state state{.regular = true, .size = response.total, .etag = response.validator()};
    if (response.status == 200) state.size = response.received;
    if (response.received != std::min<std::uint64_t>(head.size(), state.size)) throw_mismatch(0, head.size(), response);
    return state;
  }

  void read(const io::file_state& state, std::uint64_t offset, std::span<std::byte> out) override {
    s3_client::request r{.key = key_, .query = version_, .range = {offset, out.size()}, .output = out};
    if (is_etag(state.etag)) r.only_if["if-match"] = "\"" + state.etag + "\"";
    for (retry_policy tries;;) {
      const auto response = client_.send(r);
      if (response.status == 404 || response.status == 412 || response.is_other_state(state.etag)) throw_changed();
      if (response.status == 206 && response.total != state.size) throw_changed();
      const bool is_full = response.status == 200 && offset == 0 && out.size() == state.size;
      if ((response.status == 206 || is_full) && response.received == out.size()) return;
      if (tries.attempts() == max_mismatched_responses || !tries.wait("another range from " + client_.settings().url))
        throw_mismatch(offset, out.size(), response);
    }
  }

  io::file_state current_state() override {
    const auto response = client_.send({.method = "HEAD", .key = key_, .query = version_});
    if (response.status == 404) return {};
    return {true, static_cast<std::uint64_t>(std::max(response.length, 0LL)), 0, 0, response.validator()};
  }

 private:
  object_in_s3(const std::string& name, s3_settings settings) : name_(name), key_(settings.prefix), client_(std::move(settings)) {
    if (const std::size_t version = version_in(name_); version != std::string::npos) {
      version_ = {{"versionId", name_.substr(version + version_parameter.size())}};
      key_.resize(key_.size() - (name_.size() - version));
    }
    if (key_.empty())
      throw zarrbits::error(errc::invalid_option, "\"" + name_ + "\" names a bucket; use the name of an HDF5 file in it",
                            {name_});
  }

  [[noreturn]] void throw_not_found() const {
    throw zarrbits::error(
        errc::not_found,
        "cannot open \"" + name_ + "\": there is no such object; use the name of an HDF5 file, and check `endpoint`", {name_});
  }
  [[noreturn]] void throw_changed() const {
    throw zarrbits::error(
        errc::changed,
        "the source \"" + name_ + "\" changed while it was read; convert it again when no process is writing to it", {name_});
  }
  [[noreturn]] void throw_mismatch(std::uint64_t offset, std::size_t size, const s3_client::response& response) const {
    throw zarrbits::error(errc::server_failed,
                          client_.settings().server_name() + " answers " + std::to_string(response.status) + " with " +
                              std::to_string(response.received) + " bytes of \"" + name_ + "\", but bytes " +
                              io::range_text({offset, size}) + " were wanted; check `endpoint`",
                          {name_});
  }

  const std::string name_;
  std::string key_;
  std::map<std::string, std::string> version_ = {};  // "versionId"; of a name "s3://bucket/key?versionId=..."
  s3_client client_;
};

}  // namespace

std::unique_ptr<remote_object> find_s3_object(const std::string& name, const remote_access& remote) {
  return std::make_unique<object_in_s3>(name, remote);
}

}  // namespace zarrbits::remote
