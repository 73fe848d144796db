// SPDX-License-Identifier: BSL-1.0
//
// Credentials for names at az:// and abfs://, from the variables that Azure's libraries, adlfs and obstore share: a connection
// string, the account's key, a shared access signature, a token, or what an application or a machine exchanges for a token.
//
#ifndef ZARRBITS_REMOTE_AZURE_CREDENTIALS_HPP
#define ZARRBITS_REMOTE_AZURE_CREDENTIALS_HPP

#include "remote/sigv4.hpp"

#include <zarrbits/remote_access.hpp>

#include <string>

namespace zarrbits::remote {

// `target`: what they are for, for sentences. `ca_file`: for the server of tokens. The account is their access key. Throws
// zarrbits::error if it finds nothing.
s3_credentials find_azure_credentials(const std::string& target, const remote_access& remote, const std::string& ca_file);

}  // namespace zarrbits::remote

#endif
