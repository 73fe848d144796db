// SPDX-License-Identifier: BSL-1.0
//
// Where an S3 server is and who we are there: from the environment variables and the profile files that all S3 programs share.
//
#ifndef ZARRBITS_CONVERT_STORE_S3_SETTINGS_HPP
#define ZARRBITS_CONVERT_STORE_S3_SETTINGS_HPP

#include <string>

namespace zarrbits::conversion {

struct s3_settings {
  std::string bucket, prefix;                  // of "s3://bucket/prefix"; the prefix without "/" at its ends
  std::string access_key, secret_key, session_token;
  std::string region = "us-east-1";
  std::string url;  // of the bucket, without "/" at the end
};

// Throws convert_error where the target is no "s3://bucket/prefix" or nothing says who we are. `endpoint` goes before the environment's.
s3_settings read_s3_settings(const std::string& target, const std::string& endpoint);

}  // namespace zarrbits::conversion

#endif
