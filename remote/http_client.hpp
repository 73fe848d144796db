// SPDX-License-Identifier: BSL-1.0
//
// Single HTTP requests, by libcurl, and how often they are repeated. What a response means is for the caller to say.
//
//   http_client client("");
//   for (retry_policy tries;;) {
//     const auto answer = client.send({.url = "https://host/x", .range = {0, 100}, .timeout = tries.timeout()});
//     if (!(answer.error ? answer.transient : is_transient(answer.status)) || !tries.wait()) return answer;
//   }
//
#ifndef ZARRBITS_REMOTE_HTTP_CLIENT_HPP
#define ZARRBITS_REMOTE_HTTP_CLIENT_HPP

#include "io/byte_range.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::remote {

// Seconds without progress until a request counts as lost; the environment may set a different number (ZARRBITS_S3_PATIENCE).
double http_timeout();

// True for a response that may be a different one the next time: 408, 429, and 5xx but 501.
bool is_transient(long status);

// Seconds since the machine started, those that it slept included: a process that was stopped, or whose machine slept, sees the
// gap.
double uptime();

// "bytes 0-99/1000", or "bytes */1000": of a response.
struct content_range {
  std::optional<std::uint64_t> first, last, total;
};

// How often, and after which pauses, a request is repeated: each pause is longer, with a random part, so that threads that
// failed together do not retry together.
class retry_policy {
 public:
  static constexpr unsigned max_attempts = 10;
  // Seconds that the next attempt may go without progress.
  double timeout() const;
  // Waits, and returns true if there is to be another attempt. `reason`: what happened, such as "503 from host". `wish`: seconds
  // that the server asked for; 0: none.
  bool wait(const std::string& reason, double wish = 0);
  unsigned attempts() const { return attempts_; }
  // ", after 3 attempts", or "".
  std::string attempts_text() const;
  // Throws zarrbits::error if the program was asked to end, and a server did not answer since.
  static void throw_if_cancelled(const std::string& server);

 private:
  unsigned attempts_ = 1;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

// Thread-safe. Connections stay open. Redirects are not followed, and nothing is ever fetched but by http and https.
class http_client {
 public:
  // `ca_file`: certificates to trust; "": the system's.
  explicit http_client(std::string ca_file);
  ~http_client();
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;

  struct request {
    const char* method = "GET";
    std::string url = {};                   // percent-encoded
    std::vector<std::string> headers = {};  // "name: value"
    std::span<const std::byte> body = {};
    io::byte_range range = {};              // GET only these bytes, unless it is empty
    std::span<std::byte> output = {};       // receives the body of a 2xx, instead of response::body; a longer one is too long
    std::size_t max_body_bytes = 16 << 20;  // limit of a body, in bytes
    double timeout = 0;                     // seconds without progress; 0: http_timeout()
    bool begins_late = false;               // the server may work for minutes before it answers
    bool netrc = false;                     // user and password from ~/.netrc, or $NETRC
    bool cookies = false;                   // keep cookies, as logins need them that go over several servers
    bool no_private_address = false;        // do not connect to a loopback, link-local or private address
    bool newer_http = false;                // HTTP/2 where the server has it
    bool direct = false;                    // through no proxy: the request is for this machine alone
    double send_before = 0;                 // it is sent by this uptime(), or not at all; 0: any
    double max_gap = 0;                     // seconds after which a body that has stopped to go out is given up; 0: any
  };
  struct response {
    long status = 0;  // 0: none arrived
    std::string body = {};
    std::size_t received = 0;                         // bytes in request::output
    std::map<std::string, std::string> headers = {};  // names in lower case; the last of each name
    long long length = -1;                            // as announced; of a HEAD, too
    content_range range = {};                         // of a 206 or 416
    std::string redirect = {};                        // absolute URL of a 3xx
    bool error = false;                               // it did not arrive, or not all of it
    bool transient = false;                           // the error may be temporary
    // What to do if the error is that the server cannot be verified: "; name the file ..."; else "".
    std::string certificate_remedy = {};
    bool no_such_host = false;     // the error is that the name has no address
    bool private_address = false;  // the error is that the server has a private address
    bool too_long = false;         // the error is that the body, or its headers, are too long
    std::string reason = {};       // of the error

    std::string_view header(const std::string& name) const;  // "" if absent
    // What it is, for people: "503".
    std::string summary() const { return error ? "no response" : std::to_string(status); }
    double retry_after() const;  // seconds that the server asks for, as a number or a date; or 0
    // A 206 whose bytes, in request::output, are those of this range, or as many of them as the file has.
    bool has(const io::byte_range& requested) const;
  };
  // One attempt.
  response send(const request& r);

 private:
  struct shared_cookies;
  void* take_handle();
  void give_back(void* handle);

  std::string ca_file_;
  std::mutex mutex_;
  std::vector<void*> idle_;
  std::unique_ptr<shared_cookies> cookies_;
};

// One client for all files and stores, so that they share its connections. After a fork there is a new one.
http_client& shared_http_client(const std::string& ca_file);

std::string percent_encoded(const std::string& text, bool keep_slashes);

}  // namespace zarrbits::remote

#endif
