// SPDX-License-Identifier: BSL-1.0
//
// Address of an S3 server, and where our credentials for it come from: options, and the environment variables and profile files
// that all S3 programs share.
//
#ifndef ZARRBITS_REMOTE_S3_SETTINGS_HPP
#define ZARRBITS_REMOTE_S3_SETTINGS_HPP

#include "io/remote_url.hpp"

#include <zarrbits/remote_access.hpp>

#include <memory>
#include <string>

namespace zarrbits::remote {

class credential_source;

// Which of Amazon's servers, and where the bucket is in the URL, as the profile says.
struct amazon_endpoint {
  bool fips = false, dualstack = false, accelerate = false;
  bool path_style = false;  // the bucket is the first part of the path, not of the server's name
};

struct s3_settings {
  io::cloud kind = io::cloud::s3;  // Google's is the XML interface
  std::string bucket, prefix;      // from "s3://bucket/prefix"; the prefix without "/" at its ends
  std::string root;                // "s3://bucket/", as it was given
  std::string region = "us-east-1";
  std::string url;         // URL of the bucket, without "/" at the end, and without a user name
  bool is_amazon = false;  // the URL follows from the bucket, the region and this:
  amazon_endpoint amazon = {};
  bool request_payer = false;  // the requester pays
  std::string ca_file;         // certificates to trust; "": the system's
  std::shared_ptr<credential_source> credentials;

  // "s3://bucket/key", for sentences and as the place of an error.
  std::string name_of(const std::string& key) const { return root + key; }
  // "the S3 server", for sentences.
  std::string server_name() const;
  // "S3 bucket", for sentences.
  std::string bucket_kind() const;
  bool is_google() const { return kind == io::cloud::google; }
  bool is_azure() const { return kind == io::cloud::azure; }
  // True if requests can be read in transit: plain http to another machine.
  bool is_open() const;
};

// Asks no server and runs no program. Throws zarrbits::error if the target is not an "s3://bucket/prefix", "gs://bucket/prefix"
// or "az://container/prefix".
s3_settings read_s3_settings(const std::string& target, const remote_access& remote);
// For a store that is written: with credentials, even if those that read need none. Its keys have no empty parts.
s3_settings read_s3_target(const std::string& target, remote_access remote);

// "amazonaws.com", or the domain of another partition; S3's own servers with two stacks have it, too.
std::string amazon_domain(const std::string& region);

// URL of a bucket of Amazon's in a region.
std::string amazon_url(const std::string& bucket, const std::string& region, const amazon_endpoint& endpoint);

}  // namespace zarrbits::remote

#endif
