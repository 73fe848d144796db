// SPDX-License-Identifier: BSL-1.0
#include "io/sigv4.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <ctime>

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace zarrbits::io {

namespace {

std::string hex_digits(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

std::string digest_of(std::span<const std::byte> bytes, const EVP_MD* kind) {
  unsigned char result[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), result, &size, kind, nullptr) != 1) return {};
  return hex_digits({reinterpret_cast<const char*>(result), size});
}

[[noreturn]] void no_sha256() {
  throw zarrbits::error(errc::unsupported, "OpenSSL has no SHA-256, which S3 needs; choose a local file or directory");
}

std::string sha256_of(std::span<const std::byte> bytes) {
  std::string digest = digest_of(bytes, EVP_sha256());
  if (digest.empty()) no_sha256();
  return digest;
}

std::string hmac(std::string_view key, std::string_view text) {
  unsigned char result[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
            text.size(), result, &size)) {
    no_sha256();
  }
  return {reinterpret_cast<const char*>(result), size};
}

}  // namespace

bool is_header_value(std::string_view text) {
  constexpr std::size_t longest = 32 << 10;
  return text.size() <= longest && std::all_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) >= ' ' && static_cast<unsigned char>(c) < 0x7F;
         });
}

std::vector<std::string> signed_headers(request_to_sign r, const s3_credentials& keys, const std::string& region,
                                        const std::string& service) {
  std::map<std::string, std::string>& headers = r.headers;
  headers["host"] = r.host;
  if (!keys.is_anonymous()) {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    char stamp[24];
    ::gmtime_r(&now, &utc);
    std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    const std::string day(stamp, 8), scope = day + "/" + region + "/" + service + "/aws4_request", hash = sha256_of(r.body);
    if (service == "s3") headers["x-amz-content-sha256"] = hash;
    headers["x-amz-date"] = stamp;
    if (!keys.session_token.empty()) headers["x-amz-security-token"] = keys.session_token;
    std::string lines, names;
    for (const auto& [name, value] : headers) {
      lines += name + ":" + value + "\n";
      names += (names.empty() ? "" : ";") + name;
    }
    const std::string canonical =
        std::string(r.method) + "\n" + r.path + "\n" + r.query + "\n" + lines + "\n" + names + "\n" + hash;
    const std::string text = "AWS4-HMAC-SHA256\n" + std::string(stamp) + "\n" + scope + "\n" +
                             sha256_of(std::as_bytes(std::span(canonical.data(), canonical.size())));
    std::string key = "AWS4" + keys.secret_key;
    for (const std::string& part : {day, region, service, std::string("aws4_request")}) key = hmac(key, part);
    headers["authorization"] = "AWS4-HMAC-SHA256 Credential=" + keys.access_key + "/" + scope + ", SignedHeaders=" + names +
                               ", Signature=" + hex_digits(hmac(key, text));
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : headers) lines.push_back(name + ": " + value);
  return lines;
}

std::string md5_of(std::span<const std::byte> bytes) { return digest_of(bytes, EVP_md5()); }

}  // namespace zarrbits::io
