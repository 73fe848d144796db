// SPDX-License-Identifier: BSL-1.0
//
// Signed requests to one S3 bucket, repeated if the server or the network fails temporarily.
//
//   s3_client client(read_s3_settings("s3://bucket/prefix", ""));
//   client.send({.method = "PUT", .key = "a/c/0", .body = bytes});
//
#ifndef ZARRBITS_IO_S3_CLIENT_HPP
#define ZARRBITS_IO_S3_CLIENT_HPP

#include "io/s3_settings.hpp"
#include "io/xml.hpp"

#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// Seconds without progress until a request counts as lost; the environment may set a different number (ZARRBITS_S3_PATIENCE).
double s3_patience();

// Thread-safe.
class s3_client {
 public:
  explicit s3_client(s3_settings settings);
  ~s3_client();
  s3_client(const s3_client&) = delete;
  s3_client& operator=(const s3_client&) = delete;

  struct request {
    const char* method = "GET";
    std::string key = {};                           // whole key, with the prefix; "" is the bucket
    std::map<std::string, std::string> query = {};  // sorted by name, as the signature requires
    std::span<const std::byte> body = {};
    std::string range = {};   // "0-99": GET only these bytes
    const char* answer = "";  // name of the XML element that a 200 must have
    std::map<std::string, std::string> only_if =
        {};                          // "if-none-match": "*"; responses of 400, 409, 412 and 501 are then returned too
    std::size_t longest = 16 << 20;  // limit of a response in bytes; a longer one is an error
  };
  struct response {
    long status = 0;
    std::string body;
    xml_element xml;          // if an `answer` was required
    std::string etag;         // without quotes
    bool etag_is_md5 = true;  // as far as the other headers show
    std::string date;         // the server's clock
    long long length = -1;    // from a HEAD
    unsigned attempts = 1;
  };
  // Returns responses of 2xx, and of 404, whose meaning depends on the request. Any other response is a zarrbits::error.
  response send(const request& r);
  // A PUT of bytes: a 2xx counts only if its ETag shows that the server has them.
  response store(const request& r);

  const s3_settings& settings() const { return settings_; }
  static std::string percent_encoded(const std::string& text, bool keep_slashes);

 private:
  response attempt(const request& r, const std::string& path, const std::string& query, void* handle, int& transport_error,
                   std::string& transport_reason) const;
  void* signed_headers(const request& r, const std::string& path, const std::string& query,
                       std::map<std::string, std::string> headers) const;
  std::string why_unreached(const request& r, int transport_error, const std::string& reason) const;
  void* take_handle();
  void give_back(void* handle);

  s3_settings settings_;
  std::string server_, host_, path_;  // parts of the URL: "https://host:9000", "host:9000", "/bucket"
  std::mutex mutex_;
  std::vector<void*> idle_;  // their connections stay open
};

}  // namespace zarrbits::conversion

#endif
