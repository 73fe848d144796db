// SPDX-License-Identifier: BSL-1.0
//
// The credentials of requests to S3, from where all AWS tools have them: environment, profiles, roles (STS), programs, containers
// and instances; for names at gs://, from where Google's tools have them (google_credentials.hpp). Temporary ones are replaced
// before they end.
//
//   credential_source source("s3://bucket/prefix", remote, "us-east-1", "");
//   const s3_credentials keys = source.current();  // for one request
//   if (refused_as_expired && source.renew(keys)) ...  // repeat it
//
#ifndef ZARRBITS_REMOTE_S3_CREDENTIALS_HPP
#define ZARRBITS_REMOTE_S3_CREDENTIALS_HPP

#include "remote/sigv4.hpp"

#include <zarrbits/remote_access.hpp>

#include <memory>
#include <mutex>
#include <string>

namespace zarrbits::remote {

// Thread-safe. Nothing is asked for before current(), and what was found is shared by all sources of a process with the same
// settings.
class credential_source {
 public:
  // `target`: what the credentials are for, for sentences. `region`, `ca_file`: for STS.
  credential_source(std::string target, remote_access remote, std::string region, std::string ca_file);

  // Throws zarrbits::error if none are found, or their source fails. If only a replacement fails, the old ones are
  // returned until they end.
  s3_credentials current();
  // For a server that refuses credentials as expired or unknown. True if there are others now. Throws zarrbits::error.
  bool renew(const s3_credentials& refused);

 private:
  class shared;
  shared& of_process();

  const std::string target_;
  const remote_access remote_;
  const std::string region_, ca_file_;
  std::once_flag init_flag_;
  std::shared_ptr<shared> shared_;
};

}  // namespace zarrbits::remote

#endif
