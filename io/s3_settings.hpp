// SPDX-License-Identifier: BSL-1.0
//
// Address of an S3 server, and where our credentials for it come from: options, and the environment variables and profile files
// that all S3 programs share.
//
#ifndef ZARRBITS_IO_S3_SETTINGS_HPP
#define ZARRBITS_IO_S3_SETTINGS_HPP

#include <zarrbits/remote_access.hpp>

#include <memory>
#include <string>

namespace zarrbits::io {

class credential_source;

struct s3_settings {
  std::string bucket, prefix;  // from "s3://bucket/prefix"; the prefix without "/" at its ends
  std::string region = "us-east-1";
  std::string url;         // URL of the bucket, without "/" at the end, and without a user name
  bool is_amazon = false;  // the URL follows from the bucket and the region
  std::string ca_file;     // certificates to trust; "": the system's
  std::shared_ptr<credential_source> credentials;

  // True if requests can be read in transit: plain http to another machine.
  bool is_open() const;
};

// Asks no server and runs no program. Throws zarrbits::error if the target is not an "s3://bucket/prefix".
s3_settings read_s3_settings(const std::string& target, const remote_access& remote);

// URL of a bucket of Amazon's in a region.
std::string amazon_url(const std::string& bucket, const std::string& region);

}  // namespace zarrbits::io

#endif
