// SPDX-License-Identifier: BSL-1.0
#include "remote/remote_object.hpp"

#include "io/remote_url.hpp"
#include "remote/http_client.hpp"
#include "remote/server_url.hpp"
#include "text/name_escaping.hpp"
#include "text/node_names.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::remote {

namespace {

constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 62;  // bytes of a file
constexpr unsigned max_redirects = 10;

// "https://host:8000" of a URL; what requests with secrets go to.
std::string_view server_of(std::string_view url) { return url.substr(0, url.find_first_of("/?#", url.find("://") + 3)); }

std::string ca_file_of(const remote_access& remote) {
  if (!remote.ca_file.empty()) return remote.ca_file;
  for (const char* name : {"AWS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (const char* value = std::getenv(name); value && *value) return value;
  }
  return {};
}

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

class web_object final : public remote_object {
 public:
  web_object(std::string name, const remote_access& remote)
      : name_(std::move(name)),
        url_(io::full_url(name_)),
        headers_(headers_of(remote)),
        follow_private_(remote.follow_private),
        no_etag_(remote.no_etag),
        client_(shared_http_client(ca_file_of(remote))) {}

  io::file_state open(std::span<std::byte> head) override {
    std::size_t got = 0;
    io::file_state state;
    ask("GET", nullptr, 0, head, [&](const http_client::response& r) {
      state = {.regular = true, .etag = identity(r)};
      got = r.received;
      if (r.status == 416) return true;  // an empty file has no first byte
      if (r.status == 200) {             // a server without ranges sent all of it
        state.size = r.received;
        return r.length < 0 || static_cast<std::uint64_t>(r.length) == r.received;
      }
      if (!r.has({0, head.size()}) || !r.range.total || *r.range.total > max_file_bytes) return false;
      state.size = *r.range.total;
      return true;
    });
    return state;
  }

  void read(const io::file_state& state, std::uint64_t offset, std::span<std::byte> out) override {
    ask("GET", &state, offset, out, [&](const http_client::response& r) {
      require_same(state, r);
      if (r.status == 200) return offset == 0 && r.received == out.size() && state.size == out.size();
      if (r.range.total && *r.range.total != state.size) throw_changed();
      return r.has({offset, out.size()}) && r.received == out.size();
    });
  }

  io::file_state current_state() override {
    io::file_state state;
    std::byte first{};
    const std::span<std::byte> one(&first, 1);
    // not HEAD: a signed URL is signed for GET alone
    ask("GET", nullptr, 0, one, [&](const http_client::response& r) {
      state = {.regular = true, .etag = identity(r)};
      if (r.status == 416) return true;
      if (r.status == 200) {
        state.size = r.too_long && r.length >= 0 ? static_cast<std::uint64_t>(r.length) : r.received;
        return true;
      }
      if (!r.has({0, 1}) || !r.range.total) return false;
      state.size = *r.range.total;
      return true;
    });
    return state;
  }

 private:
  // What the server says of the content: a strong ETag, else the time of its last change.
  std::string identity(const http_client::response& r) const {
    if (no_etag_) return {};
    const std::string_view etag = r.header("etag");
    if (etag.size() > 2 && etag.front() == '"') return text::escape_name(etag);  // which is UTF-8: it is noted
    if (const std::string_view time = r.header("last-modified"); !time.empty()) return "modified " + text::escape_name(time);
    return text::escape_name(etag);
  }

  [[noreturn]] void throw_changed() const {
    throw zarrbits::error(
        errc::changed,
        "the source \"" + name_ + "\" changed while it was read; convert it again when no process is writing to it", {name_});
  }

  void require_same(const io::file_state& state, const http_client::response& r) const {
    if (r.status == 206 || r.status == 200) {
      const std::string current = identity(r);
      if (current != state.etag) throw_changed();
    }
  }

  // Repeats a request until `understood` accepts its response: 206, 200, or 416 if the state is unknown.
  template <class F>
  void ask(const char* method, const io::file_state* state, std::uint64_t offset, std::span<std::byte> out, const F& understood) {
    std::string url = target();
    unsigned redirects = 0, misunderstood = 0;
    bool asked_again = false;
    for (retry_policy tries;;) {
      retry_policy::throw_if_cancelled(std::string(server_of(io::display_url(url))));
      const bool first_hop = server_of(url) == server_of(url_);
      http_client::request r{.method = method,
                             .url = url,
                             .range = {offset, out.size()},
                             .output = out,
                             .max_body_bytes = 64U << 10,
                             .timeout = tries.timeout(),
                             // a redirect over plain http gets no password that others could read
                             .netrc = first_hop || !is_plaintext_remote(url),
                             .cookies = true,
                             .no_private_address = !first_hop && !follow_private_,
                             .newer_http = true};
      r.headers.emplace_back("Accept-Encoding: identity");
      if (state && state->etag.starts_with('"') && state->etag.find('%') == std::string::npos)
        r.headers.push_back("If-Match: " + state->etag);
      if (first_hop) r.headers.insert(r.headers.end(), headers_.begin(), headers_.end());
      const http_client::response response = client_.send(r);
      if (response.status == 429 || response.status == 503) ++slowed_down_;
      // a body that is longer than the range: the server ignores it
      const bool ignored = response.too_long && response.status == 200;
      if (response.error && !(ignored && out.size() == 1 && !state)) {
        if (ignored) throw_ranges_unsupported();
        if (response.private_address) throw_redirect_refused(url, "which is a private address; `follow_private` allows that");
        // a name that is misspelt is not worth as much patience as a network that fails in the middle
        const bool misspelt = response.no_such_host && !state && tries.attempts() >= max_mismatched_responses;
        if (response.transient && !misspelt && tries.wait(summary_of(response, url))) continue;
        throw_unreachable(url, response, tries);
      }
      if (!response.redirect.empty() && response.status >= 300 && response.status < 400) {
        if (++redirects > max_redirects)
          throw_redirect_refused(response.redirect, "after " + std::to_string(max_redirects) + " others, which does not end");
        require_allowed(url, response.redirect);
        url = response.redirect;
        continue;
      }
      if (is_transient(response.status)) {
        if (tries.wait(summary_of(response, url), response.retry_after())) continue;
        throw_refused(url, response, tries);
      }
      // what a signed URL leads to ends after a time: the first one leads to a new one
      const bool ended = response.status == 400 || response.status == 401 || response.status == 403 || response.status == 410;
      if (ended && url != url_ && !asked_again) {
        asked_again = true;
        redirects = 0;
        url = url_;
        continue;
      }
      if (response.status == 412) throw_changed();
      const bool empty = response.status == 416 && (!state || offset >= state->size);
      if (response.status != 200 && response.status != 206 && !empty) throw_refused(url, response, tries);
      if (const std::string_view coding = response.header("content-encoding"); is_compression(coding)) {
        throw zarrbits::error(errc::server_failed,
                              "the server of \"" + name_ + "\" compresses what it sends (" + std::string(coding.substr(0, 40)) +
                                  "), so that ranges are not those of the file; download the file first",
                              {name_});
      }
      if (understood(response)) {
        const std::lock_guard lock(mutex_);
        redirected_ = url == url_ ? "" : url;
        return;
      }
      if (response.status == 200 && state) throw_ranges_unsupported();
      if (++misunderstood < max_mismatched_responses && tries.wait(summary_of(response, url))) continue;
      throw zarrbits::error(errc::server_failed,
                            "the server of \"" + name_ + "\" answers " + std::to_string(response.status) + " with " +
                                std::to_string(response.received) + " bytes and the range \"" +
                                std::string(response.header("content-range").substr(0, 80)) + "\", but bytes " +
                                io::range_text(r.range) + " were wanted" + tries.attempts_text() + "; download the file first",
                            {name_});
    }
  }

  static std::string summary_of(const http_client::response& response, const std::string& url) {
    return response.summary() + " from " + std::string(host_of(io::display_url(url)));
  }

  std::string target() const {
    const std::lock_guard lock(mutex_);
    return redirected_.empty() ? url_ : redirected_;
  }

  void require_allowed(const std::string& from, const std::string& to) const {
    if (!io::is_web(to)) throw_redirect_refused(to, "which is neither https nor http");
    if (from.starts_with("https:") && !to.starts_with("https:")) throw_redirect_refused(to, "which is not https");
  }

  [[noreturn]] void throw_redirect_refused(const std::string& location, const std::string& reason) const {
    throw zarrbits::error(errc::refused,
                          "the server of \"" + name_ + "\" redirects to \"" + io::display_url(location).substr(0, 200) + "\", " +
                              reason + (reason.find(';') == std::string::npos ? "; download the file first" : ""),
                          {name_});
  }

  [[noreturn]] void throw_ranges_unsupported() const {
    throw zarrbits::error(
        errc::unsupported,
        "the server of \"" + name_ + "\" does not send parts of files (it ignores the header Range); download the file first",
        {name_});
  }

  [[noreturn]] void throw_unreachable(const std::string& url, const http_client::response& response,
                                      const retry_policy& tries) const {
    throw zarrbits::error(errc::server_failed,
                          "the server " + std::string(server_of(io::display_url(url))) + " cannot be reached for \"" + name_ +
                              "\"" + tries.attempts_text() + ": " + response.reason +
                              (!response.certificate_remedy.empty() ? response.certificate_remedy
                               : response.too_long                  ? "; download the file first"
                                                                    : "; check the name and the network"),
                          {name_});
  }

  [[noreturn]] void throw_refused(const std::string& url, const http_client::response& response,
                                  const retry_policy& tries) const {
    const std::string status_text = std::to_string(response.status) + tries.attempts_text();
    if (response.status == 404 || response.status == 410) {
      throw zarrbits::error(
          errc::not_found,
          "cannot open \"" + name_ + "\": there is no such file (the server answers " + status_text + "); check the URL",
          {name_});
    }
    if (response.status == 401 || response.status == 403) {
      throw zarrbits::error(errc::permission_denied,
                            "the server " + std::string(server_of(io::display_url(url))) + " does not allow reading \"" + name_ +
                                "\": " + status_text +
                                "; send what it asks for, such as a token, by `headers`, or a user and a password in ~/.netrc",
                            {name_});
    }
    throw zarrbits::error(errc::server_failed,
                          "the server " + std::string(server_of(io::display_url(url))) + " refuses \"" + name_ +
                              "\": " + status_text + "; check the URL",
                          {name_});
  }

  const std::string name_, url_;
  const std::vector<std::string> headers_;
  const bool follow_private_, no_etag_;
  http_client& client_;
  mutable std::mutex mutex_;
  std::string redirected_;  // what the URL leads to, as long as that works
};

}  // namespace

std::unique_ptr<remote_object> find_web_object(const std::string& name, const remote_access& remote) {
  if (server_of(name).size() <= name.find("://") + 3)
    throw zarrbits::error(errc::invalid_option, "\"" + name + "\" names no server; write it as \"https://host/path\"", {name});
  return std::make_unique<web_object>(name, remote);
}

}  // namespace zarrbits::remote
