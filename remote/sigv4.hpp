// SPDX-License-Identifier: BSL-1.0
//
// AWS Signature Version 4 of requests to S3 and STS, and the same with Google's words ("GOOG4-HMAC-SHA256"). libcurl signs, too,
// but canonicalises paths and queries differently from version to version.
//
//   http_client::request r{.method = "PUT", .url = ...};
//   r.headers = signed_headers({.method = "PUT", .host = "host:9000", .path = "/bucket/key", .body = bytes}, keys, "us-east-1",
//   "s3");
//
#ifndef ZARRBITS_REMOTE_SIGV4_HPP
#define ZARRBITS_REMOTE_SIGV4_HPP

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::remote {

struct s3_credentials {
  std::string access_key, secret_key;
  std::string session_token = {};                                               // of temporary credentials
  std::optional<std::chrono::system_clock::time_point> expires = std::nullopt;  // as far as that is known
  std::string bearer = {};                                                      // an OAuth token, in place of keys: Google's
  std::string sas = {};               // Azure's shared access signature, which goes into the query; a secret as a token is
  std::string quota_project = {};     // whom Google charges, also for buckets that do not ask for it
  std::string project = {};           // whom Google charges for buckets that do
  std::string plaintext_server = {};  // got a secret for them by plain http, and is another machine; "" if none did

  bool is_anonymous() const { return access_key.empty() && bearer.empty() && sas.empty(); }  // requests are not signed
  bool operator==(const s3_credentials&) const = default;
};

// True if an access key or a token can go into a header: printable ASCII, of a reasonable length.
bool is_header_value(std::string_view text);

struct request_to_sign {
  const char* method;
  std::string host, path, query = {};               // percent-encoded; the query sorted by name
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::span<const std::byte> body = {};
};

// All headers of the request as "name: value", with those of the signature, in Google's words if the service is "storage".
// Without a signature if the credentials are anonymous, or a token. Throws zarrbits::error if OpenSSL has no SHA-256.
std::vector<std::string> signed_headers(request_to_sign r, const s3_credentials& keys, const std::string& region,
                                        const std::string& service);

// The bytes of an RSA signature with SHA-256, as JSON Web Tokens have it; "" if `pem` is not a private key of that kind.
std::string rs256_of(std::string_view text, const std::string& pem);

// The bytes of HMAC-SHA256. Throws zarrbits::error if OpenSSL has no SHA-256.
std::string hmac_sha256(std::string_view key, std::string_view text);

// In hexadecimal digits, for a name and not for security; "" if OpenSSL must not have this digest.
std::string sha1_of(std::string_view text);

// In hexadecimal digits; "" if OpenSSL must not have this digest (MD5 in FIPS mode).
std::string md5_of(std::span<const std::byte> bytes);

}  // namespace zarrbits::remote

#endif
