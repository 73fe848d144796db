// SPDX-License-Identifier: BSL-1.0
#include "remote/sigv4.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <ctime>
#include <memory>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

namespace zarrbits::remote {

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
  throw zarrbits::error(errc::unsupported, "OpenSSL has no SHA-256, which signatures need; choose a local file or directory");
}

std::string sha256_of(std::span<const std::byte> bytes) {
  std::string digest = digest_of(bytes, EVP_sha256());
  if (digest.empty()) no_sha256();
  return digest;
}

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view text) {
  unsigned char result[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
            text.size(), result, &size)) {
    no_sha256();
  }
  return {reinterpret_cast<const char*>(result), size};
}

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
  if (!keys.bearer.empty()) headers["authorization"] = "Bearer " + keys.bearer;
  if (!keys.access_key.empty()) {
    const bool google = service == "storage";
    const std::string name = google ? "GOOG4" : "AWS4", end = google ? "goog4_request" : "aws4_request",
                      prefix = google ? "x-goog-" : "x-amz-";
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    char stamp[24];
    ::gmtime_r(&now, &utc);
    std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    const std::string day(stamp, 8), scope = day + "/" + region + "/" + service + "/" + end, hash = sha256_of(r.body);
    if (google || service == "s3") headers[prefix + "content-sha256"] = hash;
    headers[prefix + "date"] = stamp;
    if (!keys.session_token.empty()) headers["x-amz-security-token"] = keys.session_token;
    std::string lines, names;
    for (const auto& [header, value] : headers) {
      lines += header + ":" + value + "\n";
      names += (names.empty() ? "" : ";") + header;
    }
    const std::string canonical =
        std::string(r.method) + "\n" + r.path + "\n" + r.query + "\n" + lines + "\n" + names + "\n" + hash;
    const std::string text = name + "-HMAC-SHA256\n" + std::string(stamp) + "\n" + scope + "\n" +
                             sha256_of(std::as_bytes(std::span(canonical.data(), canonical.size())));
    std::string key = name + keys.secret_key;
    for (const std::string& part : {day, region, service, end}) key = hmac_sha256(key, part);
    headers["authorization"] = name + "-HMAC-SHA256 Credential=" + keys.access_key + "/" + scope + ", SignedHeaders=" + names +
                               ", Signature=" + hex_digits(hmac_sha256(key, text));
  }
  std::vector<std::string> lines;
  for (const auto& [header, value] : headers) lines.push_back(header + ": " + value);
  return lines;
}

std::string rs256_of(std::string_view text, const std::string& pem) {
  const std::unique_ptr<BIO, int (*)(BIO*)> memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  // no callback, and an empty passphrase: an encrypted key asks nobody
  char no_passphrase[] = "";
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(
      memory ? PEM_read_bio_PrivateKey(memory.get(), nullptr, nullptr, no_passphrase) : nullptr, EVP_PKEY_free);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!key || !context || EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA) return {};
  std::string result(static_cast<std::size_t>(EVP_PKEY_size(key.get())), '\0');
  std::size_t size = result.size();
  if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(result.data()), &size,
                     reinterpret_cast<const unsigned char*>(text.data()), text.size()) != 1)
    return {};
  result.resize(size);
  return result;
}

std::string sha1_of(std::string_view text) { return digest_of(std::as_bytes(std::span(text.data(), text.size())), EVP_sha1()); }

std::string md5_of(std::span<const std::byte> bytes) { return digest_of(bytes, EVP_md5()); }

}  // namespace zarrbits::remote
