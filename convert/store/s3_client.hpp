// SPDX-License-Identifier: BSL-1.0
//
// Signed requests to one S3 bucket, repeated where the server or the way to it fails for a while.
//
//   s3_client client(read_s3_settings("s3://bucket/prefix", ""));
//   client.send({.method = "PUT", .key = "a/c/0", .body = bytes});
//
#ifndef ZARRBITS_CONVERT_STORE_S3_CLIENT_HPP
#define ZARRBITS_CONVERT_STORE_S3_CLIENT_HPP

#include "convert/store/s3_settings.hpp"

#include <cstddef>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// Thread-safe.
class s3_client {
 public:
  explicit s3_client(s3_settings settings);
  ~s3_client();
  s3_client(const s3_client&) = delete;
  s3_client& operator=(const s3_client&) = delete;

  struct request {
    const char* method = "GET";
    std::string key = {};                            // whole, with the prefix; "" is the bucket
    std::map<std::string, std::string> query = {};   // sorted by name, as the signature wants it
    std::span<const std::byte> body = {};
    std::string range = {};                          // "0-99": of a GET, these bytes alone
  };
  struct response {
    long status = 0;
    std::string body;
    std::string etag;
    long long length = -1;  // what a HEAD says
    unsigned attempts = 1;
  };
  // Returns answers of 2xx, and of 404, whose meaning depends on the question. Everything else is a convert_error.
  response send(const request& r);

  const s3_settings& settings() const { return settings_; }
  static std::string percent_encoded(const std::string& text, bool keep_slashes);

 private:
  response attempt(const request& r, const std::string& url, void* handle, int& transport_error, std::string& transport_reason) const;
  void* take_handle();
  void give_back(void* handle);

  s3_settings settings_;
  std::mutex mutex_;
  std::vector<void*> idle_;  // connections stay open in them
};

}  // namespace zarrbits::conversion

#endif
