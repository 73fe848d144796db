// SPDX-License-Identifier: BSL-1.0
//
// Our S3 keys. A process that decodes an untrusted file has no secret key, only keys that sign for one region and a few days, and
// these are not in the heap.
//
//   take_s3_keys();                        // the command's first step: the environment block no longer holds a key
//   prepare_s3(sources, store, endpoint);  // in the process that decodes: from now on it holds no secret key
//
#ifndef ZARRBITS_IO_S3_KEYS_HPP
#define ZARRBITS_IO_S3_KEYS_HPP

#include "io/secret_bytes.hpp"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace zarrbits::conversion {

// Signing keys derived from a secret key for one region, one for each day that a run may take. Thread-safe.
class signing_keys {
 public:
  static constexpr int days = 42;
  signing_keys(std::string_view secret_key, const std::string& region);
  // Signature of a text for a day ("20260131"), in hexadecimal digits. Throws zarrbits::error after the last day.
  std::string signature(std::string_view day, std::string_view text) const;

 private:
  secret_bytes keys_;
  std::map<std::string, std::size_t, std::less<>> at_;  // by day
};

// The keys from the environment. One instance for the process.
class environment_keys {
 public:
  static environment_keys& instance();

  // Moves them out of the environment block, and thereby out of /proc/self/environ.
  void take();
  // True if there is an access key, and a secret key or keys derived from it.
  bool complete() const;
  std::string access_key() const;
  std::string session_token() const;
  std::shared_ptr<const signing_keys> signing(const std::string& region);
  // A copy; empty after forget_secret_key().
  secret_bytes secret_key() const;
  // Keys derived from it stay.
  void forget_secret_key();

 private:
  mutable std::mutex mutex_;
  bool taken_ = false, forgotten_ = false;
  secret_bytes secret_;
  std::string access_key_, session_token_;
  std::map<std::string, std::shared_ptr<const signing_keys>> signing_;  // by region
};

}  // namespace zarrbits::conversion

#endif
