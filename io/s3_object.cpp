// SPDX-License-Identifier: BSL-1.0
#include "io/remote_object.hpp"

#include "io/s3_client.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <utility>

namespace zarrbits::io {

namespace {

class object_in_s3 final : public remote_object {
 public:
  object_in_s3(const std::string& name, const remote_access& remote) : object_in_s3(name, read_s3_settings(name, remote)) {}

  file_state open(std::span<std::byte> head) override {
    const auto answer = client_.send({.key = key_, .range = range_text(0, head.size()), .into = head});
    if (answer.status == 404) missing();
    if (answer.status == 416) return now();
    file_state state{.regular = true, .size = answer.total, .etag = answer.etag};
    if (answer.status == 200) state.size = answer.received;
    if (answer.received != std::min<std::uint64_t>(head.size(), state.size)) wrong(0, head.size(), answer);
    return state;
  }

  void read(const file_state& state, std::uint64_t offset, std::span<std::byte> to) override {
    s3_client::request r{.key = key_, .range = range_text(offset, to.size()), .into = to};
    if (!state.etag.empty()) r.only_if["if-match"] = "\"" + state.etag + "\"";
    for (http_retries tries;;) {
      const auto answer = client_.send(r);
      if (answer.status == 404 || answer.status == 412 || (!answer.etag.empty() && answer.etag != state.etag)) changed();
      if (answer.status == 206 && answer.total != state.size) changed();
      const bool whole = answer.status == 200 && offset == 0 && to.size() == state.size;
      if ((answer.status == 206 || whole) && answer.received == to.size()) return;
      if (tries.attempts() == most_misunderstandings || !tries.again()) wrong(offset, to.size(), answer);
    }
  }

  file_state now() override {
    const auto answer = client_.send({.method = "HEAD", .key = key_});
    if (answer.status == 404) return {};
    return {true, static_cast<std::uint64_t>(std::max(answer.length, 0LL)), 0, 0, answer.etag};
  }

 private:
  object_in_s3(const std::string& name, s3_settings settings) : name_(name), key_(settings.prefix), client_(std::move(settings)) {
    if (key_.empty())
      throw zarrbits::error(errc::invalid_option, "\"" + name_ + "\" names a bucket; use the name of an HDF5 file in it",
                            {name_});
  }

  [[noreturn]] void missing() const {
    throw zarrbits::error(
        errc::not_found,
        "cannot open \"" + name_ + "\": there is no such object; use the name of an HDF5 file, and check `endpoint`", {name_});
  }
  [[noreturn]] void changed() const {
    throw zarrbits::error(
        errc::changed,
        "the source \"" + name_ + "\" changed while it was read; convert it again when no process is writing to it", {name_});
  }
  [[noreturn]] void wrong(std::uint64_t offset, std::size_t size, const s3_client::response& answer) const {
    throw zarrbits::error(errc::server_failed,
                          "the S3 server answers " + std::to_string(answer.status) + " with " + std::to_string(answer.received) +
                              " bytes of \"" + name_ + "\", but bytes " + range_text(offset, size) +
                              " were wanted; check `endpoint`",
                          {name_});
  }

  const std::string name_, key_;
  s3_client client_;
};

}  // namespace

std::unique_ptr<remote_object> find_s3_object(const std::string& name, const remote_access& remote) {
  return std::make_unique<object_in_s3>(name, remote);
}

}  // namespace zarrbits::io
