// SPDX-License-Identifier: BSL-1.0
//
// Signed requests to one S3 bucket, repeated if the server or the network fails temporarily, if the credentials end, and if the
// bucket is in another region.
//
//   s3_client client(read_s3_settings("s3://bucket/prefix", {}));
//   client.send({.method = "PUT", .key = "a/c/0", .body = bytes});
//
#ifndef ZARRBITS_REMOTE_S3_CLIENT_HPP
#define ZARRBITS_REMOTE_S3_CLIENT_HPP

#include "io/byte_range.hpp"
#include "remote/http_client.hpp"
#include "remote/object_server.hpp"
#include "remote/request_loop.hpp"
#include "remote/s3_settings.hpp"
#include "remote/xml.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace zarrbits::remote {

struct s3_credentials;

// The right to write to a target, which ends if its owner does not show that it is alive.
class write_lease {
 public:
  write_lease() = default;
  write_lease(const write_lease&) = delete;
  write_lease& operator=(const write_lease&) = delete;
  virtual ~write_lease() = default;
  // Asks the server if the last look at it is too old. Returns the uptime() until which a request may be sent. Throws
  // zarrbits::error if another process has the target. Thread-safe.
  virtual double require() = 0;
  // Seconds that a body may pause on its way.
  virtual double max_gap() const = 0;
};

// The ETag, else "modified " and the time of the last change as in HTTP's headers; "" if the server says neither. `modified` may
// also have the form of a list of objects.
std::string s3_validator(const std::string& etag, const std::string& modified);
// Those of a response.
validators s3_validators(const http_client::response& got);
// True if it is an ETag that a condition may have.
bool is_etag(const std::string& validator);
// Seconds since 1970 of "2026-01-31T12:34:56.000Z", or of "Sat, 31 Jan 2026 12:34:56 GMT".
std::optional<double> seconds_of(const std::string& time);

// Thread-safe.
class s3_client {
 public:
  explicit s3_client(s3_settings settings);
  s3_client(const s3_client&) = delete;
  s3_client& operator=(const s3_client&) = delete;

  struct request {
    const char* method = "GET";
    std::string key = {};                           // whole key, with the prefix; "" is the bucket
    std::map<std::string, std::string> query = {};  // sorted by name, as the signature requires
    std::span<const std::byte> body = {};
    io::byte_range range = {};          // GET only these bytes, unless it is empty
    std::span<std::byte> output = {};   // receives the body of a 2xx, instead of response::body; a longer one is an error
    const char* expected_element = "";  // name of the XML element that a 200 must have
    std::map<std::string, std::string> only_if =
        {};  // if_absent(), if_unchanged(); responses of 409 and 412, to a PUT also 400 and 501, are then returned too
    std::map<std::string, std::string> headers =
        {};                                 // more of them, in Amazon's words, such as x-amz-copy-source; names in lower case
    std::size_t max_body_bytes = 16 << 20;  // limit of a response in bytes; a longer one is an error
    response_check check = {};              // for a range: of a 2xx, of a 416, and of a 200 that is longer than the output
    bool is_known_host = true;              // else a name that has no address is given up soon
  };
  struct response {
    long status = 0;
    std::string body = {};
    xml_element xml = {};          // if an `expected_element` was required
    std::string etag = {};         // without quotes
    std::string generation = {};   // of Google's objects, which the conditions of writes name
    bool etag_is_md5 = true;       // as far as the other headers show
    std::string md5 = {};          // of the bytes that were stored, in Base64, if Azure says so
    std::string copy_status = {};  // of Azure's objects: "success", "pending", ...
    std::string copy_progress = {};
    std::string date = {};      // the server's clock
    std::string modified = {};  // s3_validator() of the time of the last change alone

    std::string validator() const { return etag.empty() ? modified : etag; }  // as s3_validator() has it
    long long length = -1;                                                    // from a HEAD
    unsigned attempts = 1;
  };
  // Returns responses of 2xx, of 404 if the server says that the object, or the upload, is absent, and of 416 to a range. Any
  // other response is a zarrbits::error: a 404 of a proxy, or of a bucket that does not exist, does not show that an object is
  // absent. A 206 has the bytes of the range.
  response send(const request& r);
  // Conditions of a write, in the server's words: there is no such object; it is the one of this response.
  std::map<std::string, std::string> if_absent() const;
  std::map<std::string, std::string> if_unchanged(const response& known) const;

  // A PUT of bytes: a 2xx counts only if its ETag shows that the server has them.
  response store(const request& r);

  // What a request that copies an object of this bucket names as its source.
  std::string copy_source(const std::string& key) const;

  // From now on, requests that change the bucket are sent only as long as this lease holds; null: always.
  void set_lease(write_lease* lease) { lease_ = lease; }

  const s3_settings& settings() const { return settings_; }
  // How often the server said that there were too many requests.
  std::uint64_t slowed_down() const { return slowed_down_; }

 private:
  // Where requests go: "https://host:9000", "host:9000" and "/bucket" are parts of the URL.
  struct place {
    std::string region, url, server, host, path;
  };
  class exchange;
  static response response_of(http_client::response& got);
  static std::shared_ptr<const place> place_of(const std::string& url, const std::string& region);
  std::shared_ptr<const place> current_place() const;
  bool move_to_region(const std::string& region, const place& previous);
  http_client::response attempt(const request& r, const place& location, const s3_credentials& keys, double patience);
  bool confirms_absence(const request& r);
  void require_secure_token(const s3_credentials& keys) const;
  [[noreturn]] void throw_not_found(const request& r, const response& result, const s3_credentials& keys) const;
  std::string remedy_for(const std::string& known, bool forbidden, bool ended, bool may_have_ended,
                         const s3_credentials& keys) const;
  [[noreturn]] void throw_refused(const request& r, const response& result, const s3_credentials& keys,
                                  const std::string& tries) const;

  const s3_settings settings_;
  http_client& http_;
  mutable std::mutex mutex_;
  std::shared_ptr<const place> place_;  // changes if the server says in which region the bucket is
  std::atomic<write_lease*> lease_ = nullptr;
  std::atomic<std::uint64_t> slowed_down_ = 0;
};

}  // namespace zarrbits::remote

#endif
