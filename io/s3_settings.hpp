// SPDX-License-Identifier: BSL-1.0
//
// Address of an S3 server and our keys: from the environment variables and the profile files that all S3 programs share.
//
#ifndef ZARRBITS_IO_S3_SETTINGS_HPP
#define ZARRBITS_IO_S3_SETTINGS_HPP

#include "io/s3_keys.hpp"

#include <memory>
#include <string>

namespace zarrbits::conversion {

struct s3_settings {
  std::string bucket, prefix;             // from "s3://bucket/prefix"; the prefix without "/" at its ends
  std::string access_key, session_token;  // worthless without the secret key, which is not here
  std::shared_ptr<const signing_keys> keys;
  std::string region = "us-east-1";
  std::string url;      // URL of the bucket, without "/" at the end, and without a user name
  std::string ca_file;  // certificates to trust; "": the system's

  // True if requests can be read in transit: plain http to another machine.
  bool is_open() const;
};

// Throws zarrbits::error if the target is not an "s3://bucket/prefix", or there are no keys. `endpoint` takes precedence over the
// environment's. `secret_key`: receives the secret key, for code that signs requests itself.
s3_settings read_s3_settings(const std::string& target, const std::string& endpoint, secret_bytes* secret_key = nullptr);

}  // namespace zarrbits::conversion

#endif
