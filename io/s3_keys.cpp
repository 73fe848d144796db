// SPDX-License-Identifier: BSL-1.0
#include "io/s3_keys.hpp"

#include "io/s3_access.hpp"
#include "io/s3_settings.hpp"

#include <zarrbits/error.hpp>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <set>
#include <vector>

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace zarrbits::conversion {

namespace {

constexpr std::size_t digest_size = 32;
constexpr const char *access_name = "AWS_ACCESS_KEY_ID", *secret_name = "AWS_SECRET_ACCESS_KEY",
                     *token_name = "AWS_SESSION_TOKEN";

void hmac(const void* key, std::size_t key_size, std::string_view text, char* out) {
  unsigned size = 0;
  if (!HMAC(EVP_sha256(), key, static_cast<int>(key_size), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
            reinterpret_cast<unsigned char*>(out), &size) ||
      size != digest_size) {
    throw zarrbits::error(errc::unsupported, "OpenSSL has no HMAC with SHA-256, which S3 needs; choose a directory");
  }
}

std::string_view of_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Overwrites the value's bytes in place, and removes the name.
void erase(const char* name) {
  if (char* value = std::getenv(name)) {
    wipe(value, std::strlen(value));
    ::unsetenv(name);
  }
}

}  // namespace

signing_keys::signing_keys(std::string_view secret_key, const std::string& region) : keys_(days * digest_size) {
  secret_bytes first(secret_key.size() + 4), between(digest_size);
  first.append("AWS4");
  first.append(secret_key);
  // starting the day before: the clock may be corrected
  const std::time_t now = std::time(nullptr) - 86400;
  for (int i = 0; i < days; ++i) {
    const std::time_t then = now + i * std::time_t{86400};
    std::tm utc{};
    char day[16];
    ::gmtime_r(&then, &utc);
    std::strftime(day, sizeof day, "%Y%m%d", &utc);
    const std::size_t at = static_cast<std::size_t>(i) * digest_size;
    char* const out = keys_.data() + at;
    hmac(first.data(), first.size(), day, out);
    hmac(out, digest_size, region, between.data());
    hmac(between.data(), digest_size, "s3", out);
    hmac(out, digest_size, "aws4_request", between.data());
    std::memcpy(out, between.data(), digest_size);
    at_[day] = at;
  }
}

std::string signing_keys::signature(std::string_view day, std::string_view text) const {
  const auto found = at_.find(day);
  if (found == at_.end()) {
    throw zarrbits::error(errc::permission_denied, "the signing keys for S3 were made for " + std::to_string(days - 2) +
                                                       " days, which have passed; convert again with `resume`");
  }
  char digest[digest_size];
  hmac(keys_.data() + found->second, digest_size, text, digest);
  std::string hex;
  for (const char c : digest) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

environment_keys& environment_keys::instance() {
  static environment_keys keys;
  return keys;
}

void environment_keys::take() {
  const std::lock_guard held(mutex_);
  if (taken_) return;
  taken_ = true;
  access_key_ = of_environment(access_name);
  session_token_ = of_environment(token_name);
  secret_ = secret_bytes(of_environment(secret_name));
  for (const char* name : {access_name, secret_name, token_name}) erase(name);
}

bool environment_keys::complete() const {
  const std::lock_guard held(mutex_);
  if (!taken_) return !of_environment(access_name).empty() && !of_environment(secret_name).empty();
  return !access_key_.empty() && (forgotten_ ? !signing_.empty() : !secret_.empty());
}

std::string environment_keys::access_key() const {
  const std::lock_guard held(mutex_);
  return taken_ ? access_key_ : std::string(of_environment(access_name));
}

std::string environment_keys::session_token() const {
  const std::lock_guard held(mutex_);
  return taken_ ? session_token_ : std::string(of_environment(token_name));
}

std::shared_ptr<const signing_keys> environment_keys::signing(const std::string& region) {
  const std::lock_guard held(mutex_);
  if (!taken_) return std::make_shared<const signing_keys>(of_environment(secret_name), region);
  auto& keys = signing_[region];
  if (!keys) {
    if (forgotten_)
      throw zarrbits::error(errc::unsupported, "this process discarded its secret key for S3 before it needed the region \"" +
                                                   region + "\"; convert in one region at a time");
    keys = std::make_shared<const signing_keys>(secret_.view(), region);
  }
  return keys;
}

secret_bytes environment_keys::secret_key() const {
  const std::lock_guard held(mutex_);
  return secret_bytes(taken_ ? secret_.view() : of_environment(secret_name));
}

void environment_keys::forget_secret_key() {
  const std::lock_guard held(mutex_);
  if (!taken_) return;
  secret_ = secret_bytes();
  forgotten_ = true;
}

void prepare_s3(const std::vector<std::string>& sources, const std::string& store, const std::string& endpoint,
                const std::function<void(const std::string&)>& warning) {
  std::vector<std::string> names = sources;
  names.push_back(store);
  std::set<std::string> buckets;
  for (const std::string& name : names) {
    if (!is_s3(name) || !buckets.insert(name.substr(0, name.find('/', 5))).second) continue;
    const s3_settings settings = read_s3_settings(name, endpoint);
    if (warning && settings.is_open()) {
      warning("\"" + settings.url + "\" is plain http: the traffic can be read and changed in transit" +
              (settings.session_token.empty() ? "" : ", and the session token can be stolen") +
              "; use https, with AWS_CA_BUNDLE if the server's certificate is self-signed");
    }
  }
  // libhdf5 signs requests itself, and keeps the key in the heap
  if (!any_in_s3(sources)) environment_keys::instance().forget_secret_key();
}

void take_s3_keys() { environment_keys::instance().take(); }

}  // namespace zarrbits::conversion
