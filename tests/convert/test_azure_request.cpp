// SPDX-License-Identifier: BSL-1.0
//
// Requests are signed as the azure-storage-blob package signs them: tests/golden/azure_signatures.json.
//
#include "io/remote_url.hpp"
#include "remote/azure_request.hpp"
#include "text/base64.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

using namespace zarrbits;

BOOST_AUTO_TEST_CASE(requests_are_signed_as_azure_storage_blob_signs_them) {
  const char* const folder_of_tests = std::getenv("ZARRBITS_TEST_DATA");
  BOOST_TEST_REQUIRE(folder_of_tests);
  std::ifstream file(std::string(folder_of_tests) + "/golden/azure_signatures.json");
  const auto document = nlohmann::json::parse(file);
  BOOST_TEST_REQUIRE(document["cases"].size() >= 20U);
  const std::string account = document["account"];
  const auto key = text::decode_base64(document["key"].get<std::string>());
  BOOST_TEST_REQUIRE(key.has_value());
  for (const auto& one : document["cases"]) {
    BOOST_TEST_CONTEXT(one["name"].get<std::string>()) {
      const std::string method = one["method"];
      const std::vector<std::byte> body(one["body_bytes"].get<std::size_t>());
      const remote::azure_request request{
          .method = method.c_str(), .path = one["path"], .query = one["query"], .headers = one["headers"], .body = body};
      const std::string text = remote::azure_string_to_sign(request, account);
      BOOST_TEST(text == one["signed"].get<std::string>());
      const std::string bytes(reinterpret_cast<const char*>(key->data()), key->size());
      BOOST_TEST("SharedKey " + account + ":" + text::base64(remote::hmac_sha256(bytes, text)) ==
                 one["authorization"].get<std::string>());
    }
  }
}

BOOST_AUTO_TEST_CASE(what_azure_requires_of_each_request_is_sent) {
  const auto headers_of = [](remote::azure_request r, const remote::s3_credentials& keys) {
    return remote::azure_headers(std::move(r), keys);
  };
  const auto has = [](const std::vector<std::string>& lines, const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  const std::string text = "hello world";
  const auto body = std::as_bytes(std::span(text.data(), text.size()));
  const remote::s3_credentials token{.access_key = {}, .secret_key = {}, .bearer = "x"};
  const auto put = headers_of({.method = "PUT", .path = "/c/k", .body = body}, token);
  BOOST_TEST(has(put, "x-ms-blob-type: BlockBlob"));
  BOOST_TEST(has(put, "content-md5: XrY7u+Ae7tCTyyK7j1rNww=="));
  BOOST_TEST(has(put, "authorization: Bearer x"));
  BOOST_TEST(has(put, "x-ms-version: 2020-10-02"));
  const auto block = headers_of({.method = "PUT", .path = "/c/k", .query = {{"comp", "block"}}, .body = body}, token);
  BOOST_TEST(!has(block, "x-ms-blob-type: BlockBlob"));
  const auto get = headers_of({.method = "GET", .path = "/c/k"}, {});
  BOOST_TEST(get.size() == 2U);
  BOOST_CHECK_THROW(headers_of({.method = "GET", .path = "/c/k"}, {.access_key = "a", .secret_key = "not Base64!"}),
                    std::exception);
}

BOOST_AUTO_TEST_CASE(names_of_azure) {
  using io::may_be_within, io::redact_url;
  for (const char* same : {"az://c/x.zarr", "abfs://c/x.zarr/", "abfss://c@a.dfs.core.windows.net/x.zarr/y"})
    BOOST_TEST(may_be_within(same, "abfs://c@a.blob.core.windows.net/x.zarr"), same);
  for (const char* other : {"az://c/x.zarr2", "az://d/x.zarr", "abfs://c@b.dfs.core.windows.net/x.zarr", "s3://c/x.zarr"})
    BOOST_TEST(!may_be_within(other, "abfs://c@a.dfs.core.windows.net/x.zarr"), other);
  BOOST_TEST(may_be_within("s3://b/x/y", "s3://b/x/"));
  BOOST_TEST(!may_be_within("gs://b/x", "s3://b/x"));
  for (const char* plain : {"abfs://c@a.dfs.core.windows.net/x@y", "az://c/what?", "az://c/x"})
    BOOST_TEST(redact_url(plain) == plain);
  BOOST_TEST(redact_url("az://c/x?sv=2021&SIG=secret") == "az://c/x?***");
  BOOST_TEST(redact_url("abfs://c@a.dfs.core.windows.net/x?sig=secret") == "abfs://c@a.dfs.core.windows.net/x?***");
  BOOST_TEST(redact_url("az://user:secret@c/x") == "az://***@c/x");
}
