// SPDX-License-Identifier: BSL-1.0
//
// Ranges of an object, whoever its server is.
//
#include "io/remote_url.hpp"
#include "remote/object_server.hpp"
#include "remote/remote_object.hpp"
#include "remote/s3_client.hpp"
#include "text/node_names.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace zarrbits::remote {

namespace {

constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 62;

// True for a list such as "gzip, aws-chunked" that has a compression. Of the other names, one is about how the file was uploaded,
// and one is a mistake for a charset.
bool is_compression(std::string_view codings) {
  while (!codings.empty()) {
    codings.remove_prefix(std::min(codings.find_first_not_of(", \t"), codings.size()));
    const std::string coding = text::case_fold(codings.substr(0, codings.find_first_of(", \t")));
    codings.remove_prefix(coding.size());
    if (!coding.empty() && coding != "identity" && coding != "aws-chunked" && coding != "utf-8") return true;
  }
  return false;
}

void require_no_compression(const http_client::response& got, const std::string& name) {
  const std::string_view coding = got.header("content-encoding");
  if (!is_compression(coding)) return;
  throw zarrbits::error(errc::server_failed,
                        "the server of \"" + name + "\" compresses what it sends (" + std::string(coding.substr(0, 40)) +
                            "), so that ranges are not those of the file; download the file first",
                        {name});
}

// Listings of some servers have no ETag, and then the time is compared.
bool is_same(const std::string& recorded, const validators& now) {
  return recorded.starts_with(modified_prefix) ? now.modified == recorded : now.preferred() == recorded;
}

bool is_absent_status(long status) { return status == 404 || status == 410; }

class ranged_object final : public remote_object {
 public:
  ranged_object(std::string name, std::unique_ptr<object_server> server) : name_(std::move(name)), server_(std::move(server)) {}

  io::file_state open(std::span<std::byte> head) override;
  void read(const io::file_state& state, std::uint64_t offset, std::span<std::byte> out) override;
  io::file_state current_state() override;
  std::uint64_t slowed_down() const override { return server_->slowed_down(); }

 private:
  long request_state(std::span<std::byte> out, bool only_state, io::file_state& state);
  [[noreturn]] void throw_changed() const;
  [[noreturn]] void throw_ranges_unsupported() const;

  const std::string name_;
  const std::unique_ptr<object_server> server_;
};

io::file_state ranged_object::open(std::span<std::byte> head) {
  io::file_state state;
  if (const long status = request_state(head, false, state); is_absent_status(status)) server_->throw_not_found(status);
  return state;
}

io::file_state ranged_object::current_state() {
  std::byte first{};
  // not HEAD: a signed URL is signed for GET alone, and a HEAD's error has no words
  io::file_state state;
  return is_absent_status(request_state({&first, 1}, true, state)) ? io::file_state() : state;
}

// `only_state`: what comes is not needed. Returns the status.
long ranged_object::request_state(std::span<std::byte> out, bool only_state, io::file_state& state) {
  const auto check = [&](const http_client::response& got) {
    require_no_compression(got, name_);
    state = {.regular = true, .etag = server_->validators_of(got).preferred()};
    if (got.status == 416) return got.range.total.value_or(0) == 0 ? next_step::accept : next_step::wrong_range;  // it is empty
    if (got.status == 200) {  // a server without ranges sent all of it
      if (got.too_long && !only_state) throw_ranges_unsupported();
      state.size = got.too_long && got.length >= 0 ? static_cast<std::uint64_t>(got.length) : got.received;
      const bool is_all = got.too_long || got.length < 0 || static_cast<std::uint64_t>(got.length) == got.received;
      return is_all ? next_step::accept : next_step::wrong_range;
    }
    if (!got.range.total || *got.range.total > max_file_bytes) return next_step::wrong_range;
    state.size = *got.range.total;
    return next_step::accept;
  };
  return server_->get({.range = {0, out.size()}, .output = out, .validator = nullptr, .check = check});
}

void ranged_object::read(const io::file_state& state, std::uint64_t offset, std::span<std::byte> out) {
  const auto check = [&](const http_client::response& got) {
    if (got.too_long) throw_ranges_unsupported();
    require_no_compression(got, name_);
    if (got.status != 416 && !is_same(state.etag, server_->validators_of(got))) throw_changed();
    if (got.range.total && *got.range.total != state.size) throw_changed();
    if (got.status == 200) {
      if (offset != 0 || got.received != out.size() || state.size != out.size()) throw_ranges_unsupported();
      return next_step::accept;
    }
    const bool is_part = got.status == 206 && got.range.total && got.received == out.size();
    return is_part ? next_step::accept : next_step::wrong_range;
  };
  const long status = server_->get({.range = {offset, out.size()}, .output = out, .validator = &state.etag, .check = check});
  if (is_absent_status(status) || status == 412) throw_changed();
}

void ranged_object::throw_changed() const {
  throw zarrbits::error(
      errc::changed, "the source \"" + name_ + "\" changed while it was read; convert it again when no process is writing to it",
      {name_});
}

void ranged_object::throw_ranges_unsupported() const {
  throw zarrbits::error(
      errc::unsupported,
      "the server of \"" + name_ + "\" does not send parts of files (it ignores the header Range); download the file first",
      {name_});
}

}  // namespace

std::unique_ptr<remote_object> find_object(const std::string& name, const remote_access& remote) {
  return std::make_unique<ranged_object>(
      name, io::is_object_store(name) ? find_s3_server(name, remote) : find_web_server(name, remote));
}

std::unique_ptr<remote_object> find_object(s3_client& client, const std::string& key) {
  return std::make_unique<ranged_object>(client.settings().name_of(key), find_s3_server(client, key));
}

}  // namespace zarrbits::remote
