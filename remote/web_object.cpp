// SPDX-License-Identifier: BSL-1.0
//
// Files at https:// and http://: redirects, and which secrets go to which server.
//
#include "io/remote_url.hpp"
#include "remote/aws_config.hpp"
#include "remote/http_client.hpp"
#include "remote/object_server.hpp"
#include "remote/server_url.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::remote {

namespace {

constexpr unsigned max_redirects = 10;

// "https://host:8000" of a URL; what requests with secrets go to.
std::string_view server_of(std::string_view url) { return url.substr(0, url.find_first_of("/?#", url.find("://") + 3)); }

// Headers that the caller gave, and those of ZARRBITS_HEADERS, one on each line.
std::vector<std::string> headers_of(const remote_access& remote) {
  std::vector<std::string> headers = remote.headers;
  const char* value = std::getenv("ZARRBITS_HEADERS");
  for (std::string_view remaining = value ? value : ""; !remaining.empty();) {
    const std::string_view line = remaining.substr(0, remaining.find('\n'));
    remaining.remove_prefix(std::min(remaining.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") != line.npos) headers.emplace_back(line);
  }
  for (std::string& line : headers) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    const std::size_t colon = line.find(':');
    const bool name = colon != std::string::npos && colon > 0 && line.find_first_of(" \t\"(),/;<=>?@[\\]{}") > colon;
    if (!name || line.find_first_of("\r\n") != std::string::npos) {
      throw zarrbits::error(errc::invalid_option,
                            "a header of `headers` is not \"NAME: VALUE\" on one line (it is not shown, because it may be a "
                            "secret); write it as \"Authorization: Bearer ...\"");
    }
  }
  return headers;
}

class web_object final : public object_server {
 public:
  web_object(std::string name, const remote_access& remote)
      : name_(std::move(name)),
        url_(io::full_url(name_)),
        headers_(headers_of(remote)),
        follow_private_(remote.follow_private),
        no_etag_(remote.no_etag),
        client_(shared_http_client(ca_file_of(remote))) {}

  long get(const request& r) override;

  // A strong ETag, the time of the last change, or else a weak ETag.
  validators validators_of(const http_client::response& got) const override {
    if (no_etag_) return {};
    const std::string_view etag = got.header("etag"), time = got.header("last-modified");
    validators result{.modified = time.empty() ? "" : modified_prefix + text::escape_name(time)};
    const bool is_strong = etag.size() > 2 && etag.front() == '"';
    if (is_strong || time.empty()) result.etag = text::escape_name(etag);  // which is UTF-8: it is noted
    return result;
  }

  [[noreturn]] void throw_not_found(long status) const override {
    throw zarrbits::error(
        errc::not_found,
        "cannot open \"" + name_ + "\": there is no such file (the server answers " + std::to_string(status) + "); check the URL",
        {name_});
  }

  std::uint64_t slowed_down() const override { return slowed_down_; }

 private:
  class exchange;

  std::string target() const {
    const std::lock_guard lock(mutex_);
    return redirected_.empty() ? url_ : redirected_;
  }

  const std::string name_, url_;
  const std::vector<std::string> headers_;
  const bool follow_private_, no_etag_;
  http_client& client_;
  mutable std::mutex mutex_;
  std::string redirected_;  // what the URL leads to, as long as that works
  std::atomic<std::uint64_t> slowed_down_ = 0;
};

class web_object::exchange final : public request_loop {
 public:
  exchange(web_object& object, const object_server::request& r)
      : request_loop(r.range, r.validator != nullptr, object.slowed_down_), object_(object), request_(r), url_(object.target()) {}

  long status() {
    run();
    return status_;
  }

 private:
  std::string server() const override { return std::string(host_of(io::display_url(url_))); }

  http_client::response send(double timeout) override {
    const bool first_hop = is_first_hop();
    http_client::request sent{.url = url_,
                              .range = request_.range,
                              .output = request_.output,
                              .max_body_bytes = 64U << 10,
                              .timeout = timeout,
                              // a redirect over plain http gets no password that others could read
                              .netrc = first_hop || !is_plaintext_remote(url_),
                              .cookies = true,
                              .no_private_address = !first_hop && !object_.follow_private_,
                              .newer_http = true};
    sent.headers.emplace_back("Accept-Encoding: identity");
    const std::string etag = request_.validator ? *request_.validator : "";
    if (etag.starts_with('"') && etag.find('%') == std::string::npos) sent.headers.push_back("If-Match: " + etag);
    if (first_hop) sent.headers.insert(sent.headers.end(), object_.headers_.begin(), object_.headers_.end());
    return object_.client_.send(sent);
  }

  next_step judge(http_client::response& got) override {
    status_ = got.status;
    if (got.too_long && got.status == 200) return request_.check(got);  // the server ignores the range
    if (got.error) return got.transient ? next_step::retry : next_step::refuse;
    if (!got.redirect.empty() && got.status >= 300 && got.status < 400) {
      follow(got.redirect);
      return next_step::repeat;
    }
    if (is_transient(got.status)) return next_step::retry;
    // what a signed URL leads to ends after a time: the first one leads to a new one
    const bool ended = got.status == 400 || got.status == 401 || got.status == 403 || got.status == 410;
    if (ended && url_ != object_.url_ && !is_restarted_) {
      is_restarted_ = true;
      redirects_ = 0;
      url_ = object_.url_;
      return next_step::repeat;
    }
    if (got.status == 404 || got.status == 410 || (got.status == 412 && request_.validator)) return next_step::accept;
    if (got.status != 200 && got.status != 206 && got.status != 416) return next_step::refuse;
    const next_step step = request_.check(got);
    if (step != next_step::accept) return step;
    const std::lock_guard lock(object_.mutex_);
    object_.redirected_ = url_ == object_.url_ ? "" : url_;
    return step;
  }

  bool is_first_hop() const { return server_of(url_) == server_of(object_.url_); }

  void follow(const std::string& location) {
    if (++redirects_ > max_redirects)
      throw_redirect_refused(location, "after " + std::to_string(max_redirects) + " others, which does not end");
    if (!io::is_web(location)) throw_redirect_refused(location, "which is neither https nor http");
    if (url_.starts_with("https:") && !location.starts_with("https:")) throw_redirect_refused(location, "which is not https");
    url_ = location;
  }

  [[noreturn]] void throw_redirect_refused(const std::string& location, const std::string& reason) const {
    throw zarrbits::error(errc::refused,
                          "the server of \"" + object_.name_ + "\" redirects to \"" + io::display_url(location).substr(0, 200) +
                              "\", " + reason + (reason.find(';') == std::string::npos ? "; download the file first" : ""),
                          {object_.name_});
  }

  std::string server_url() const { return std::string(server_of(io::display_url(url_))); }

  [[noreturn]] void refuse(const http_client::response& got) override {
    const std::string& name = object_.name_;
    if (got.private_address) throw_redirect_refused(url_, "which is a private address; `follow_private` allows that");
    if (got.error) {
      throw zarrbits::error(errc::server_failed,
                            "the server " + server_url() + " cannot be reached for \"" + name + "\"" + attempts_text() + ": " +
                                got.reason +
                                (!got.certificate_remedy.empty() ? got.certificate_remedy
                                 : got.too_long                  ? "; download the file first"
                                                                 : "; check the name and the network"),
                            {name});
    }
    const std::string status_text = std::to_string(got.status) + attempts_text();
    if (got.status == 401 || got.status == 403) {
      throw zarrbits::error(errc::permission_denied,
                            "the server " + server_url() + " does not allow reading \"" + name + "\": " + status_text +
                                "; send what it asks for, such as a token, by `headers`, or a user and a password in ~/.netrc",
                            {name});
    }
    throw zarrbits::error(errc::server_failed,
                          "the server " + server_url() + " refuses \"" + name + "\": " + status_text + "; check the URL", {name});
  }

  [[noreturn]] void refuse_range(const http_client::response&, const std::string& reason) override {
    throw zarrbits::error(errc::server_failed,
                          "the server " + server_url() + " answers the request for \"" + object_.name_ + "\" with " + reason +
                              "; download the file first",
                          {object_.name_});
  }

  web_object& object_;
  const object_server::request& request_;
  std::string url_;
  unsigned redirects_ = 0;
  bool is_restarted_ = false;
  long status_ = 0;
};

long web_object::get(const request& r) { return exchange(*this, r).status(); }

}  // namespace

std::unique_ptr<object_server> find_web_server(const std::string& name, const remote_access& remote) {
  if (server_of(name).size() <= name.find("://") + 3)
    throw zarrbits::error(errc::invalid_option, "\"" + name + "\" names no server; write it as \"https://host/path\"", {name});
  return std::make_unique<web_object>(name, remote);
}

}  // namespace zarrbits::remote
