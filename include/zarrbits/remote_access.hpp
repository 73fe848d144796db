// SPDX-License-Identifier: BSL-1.0
//
// How files and stores at "https://...", "http://...", "s3://...", "gs://..." and "az://..." are reached.
//
//   zarrbits::convert_options options{.source = {.name = "s3://bucket/in.nc"}, .target = {.name = "out.zarr"}};
//   options.remote.no_sign_request = true;  // a public bucket
//
#ifndef ZARRBITS_REMOTE_ACCESS_HPP
#define ZARRBITS_REMOTE_ACCESS_HPP

#include <zarrbits/detail/requirements.hpp>

#include <string>
#include <vector>

namespace zarrbits {

// How a file or store on a server is reached.
struct remote_access {
  std::string endpoint = {};     // URL of an S3 server, or of one like Google's or Azure's; "": the environment decides
                                 // (AWS_ENDPOINT_URL), else theirs
  bool no_sign_request = false;  // requests to s3://, gs:// and az:// are anonymous, as public buckets allow; else
                                 // AWS_NO_SIGN_REQUEST decides
  bool request_payer = false;    // the requester pays for s3:// and gs://; else AWS_REQUEST_PAYER and GS_USER_PROJECT decide
  std::string profile = {};      // of ~/.aws/config and ~/.aws/credentials; "": AWS_PROFILE, else "default"
  // "NAME: VALUE", sent to the host of an https or http URL, and to no other host that it redirects to. A secret.
  std::vector<std::string> headers = {};
  std::string ca_file = {};     // certificates to trust, in PEM; "": AWS_CA_BUNDLE, SSL_CERT_FILE, else the system's
  bool follow_private = false;  // follow redirects of http and https to loopback, link-local and private addresses
  bool no_etag = false;  // of http and https: compare a file's length, and not its ETag or time, which differ between mirrors
  unsigned connections = 16;  // requests at a time to the servers of sources; at least 1
};

}  // namespace zarrbits

#endif
