// SPDX-License-Identifier: BSL-1.0
//
// Temporary credentials from servers: STS for roles, the container's (ECS, EKS), the instance's (EC2). Their responses are
// hostile: their size is limited, and what they say is checked.
//
#ifndef ZARRBITS_REMOTE_S3_CREDENTIAL_ENDPOINTS_HPP
#define ZARRBITS_REMOTE_S3_CREDENTIAL_ENDPOINTS_HPP

#include "remote/http_client.hpp"
#include "remote/sigv4.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace zarrbits::remote {

struct role_request {
  std::string arn;
  std::string session_name = {};  // "": one of ours
  std::string external_id = {};   // as the role's owner may require
  std::string duration = {};      // in seconds; "": an hour
};

// Where STS is, and who it may be.
struct sts_server {
  std::string url, region;
  std::string ca_file = {};
};

// The request, up to `attempts` times; `server_name` is for sentences. Throws zarrbits::error if no response arrives.
http_client::response ask_for_credentials(http_client& client, http_client::request r, unsigned attempts,
                                          const std::string& server_name);

// "2026-01-31T12:34:56Z", also with a fraction or an offset. Empty if it is not a time.
std::optional<std::chrono::system_clock::time_point> parse_expiration(const std::string& text);

// Credentials from JSON with AccessKeyId, SecretAccessKey, a session token under the name `token`, and Expiration; the last two
// may be missing where not `temporary`. `source` begins the sentence. Throws zarrbits::error, also if they have ended.
s3_credentials credentials_in_json(std::string_view text, const char* token, bool temporary, const std::string& source);

// All throw zarrbits::error.
s3_credentials assume_role(const sts_server& sts, const role_request& role, const s3_credentials& source);
// `token_file`: what an identity provider gave us, new from time to time.
s3_credentials assume_role_with_web_identity(const sts_server& sts, const role_request& role, const std::string& token_file);
// For one account and role, with the token that "aws sso login" left in ~/.aws/sso/cache for the session, or the start URL.
struct sso_request {
  std::string account, role, session, region;
  std::string server = {};
  std::string profile = {};  // for sentences
  std::string ca_file = {};
};
s3_credentials sso_credentials(sso_request r);
// Empty if the environment names no such server.
std::optional<s3_credentials> container_credentials(const std::string& ca_file);
// Empty if there is no such server (we are not on EC2, or it is disabled), or the instance has no role. `endpoint`: of the
// profile.
std::optional<s3_credentials> instance_credentials(const std::string& endpoint);

}  // namespace zarrbits::remote

#endif
