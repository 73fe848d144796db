// SPDX-License-Identifier: BSL-1.0
//
// Requests to Azure Blob Storage: the headers that each has, and the signature by the account's key ("SharedKey").
//
//   http_client::request r{.method = "PUT", .url = ...};
//   r.headers = azure_headers({.method = "PUT", .path = "/container/key", .body = bytes}, keys);
//
#ifndef ZARRBITS_REMOTE_AZURE_REQUEST_HPP
#define ZARRBITS_REMOTE_AZURE_REQUEST_HPP

#include "io/byte_range.hpp"
#include "remote/sigv4.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::remote {

struct azure_request {
  const char* method;
  std::string path;                                 // of the URL, percent-encoded
  std::map<std::string, std::string> query = {};    // not encoded, names in lower case
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::span<const std::byte> body = {};
  io::byte_range range = {};  // of bytes that are asked for, unless it is empty
};

// What is signed. `account` owns the key.
std::string azure_string_to_sign(const azure_request& r, std::string_view account);

// All headers of the request as "name: value", but that of the range, which the client sends. The server compares the body of a
// PUT with its MD5. Throws zarrbits::error if the key is not Base64.
std::vector<std::string> azure_headers(azure_request r, const s3_credentials& keys);

// In Base64, as Azure has it; "" if OpenSSL must not have this digest.
std::string base64_md5_of(std::span<const std::byte> bytes);

}  // namespace zarrbits::remote

#endif
