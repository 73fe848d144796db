// SPDX-License-Identifier: BSL-1.0
//
// Where credentials are, in the order of the AWS tools:
//
// 1. anonymous: the option, AWS_NO_SIGN_REQUEST (GDAL's), AWS_SKIP_SIGNATURE (obstore's), `no_sign_request` of the profile
// 2. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; not if the profile is an option
// 3. the profile's role (source_profile, credential_source)
// 4. AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, not if the profile is an option; else those of the profile; its sign-in (SSO),
//    its keys in ~/.aws/credentials, its credential_process, its keys in ~/.aws/config
// 5. the container (ECS, EKS)
// 6. the instance (EC2), by IMDSv2
//
#ifndef ZARRBITS_REMOTE_S3_CREDENTIAL_CHAIN_HPP
#define ZARRBITS_REMOTE_S3_CREDENTIAL_CHAIN_HPP

#include "remote/sigv4.hpp"

#include <zarrbits/remote_access.hpp>

#include <string>

namespace zarrbits::remote {

// Reads variables and files, and asks servers and programs, each time. `target`: for sentences; `region`, `ca_file`: for STS.
// Throws zarrbits::error if none are found, or their source fails.
s3_credentials find_credentials(const std::string& target, const remote_access& remote, const std::string& region,
                                const std::string& ca_file);

// The profile that is meant: of the options, else AWS_DEFAULT_PROFILE or AWS_PROFILE, else "default".
std::string profile_name(const remote_access& remote);

}  // namespace zarrbits::remote

#endif
