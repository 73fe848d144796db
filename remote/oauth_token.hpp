// SPDX-License-Identifier: BSL-1.0
//
// Access tokens of OAuth, as the servers of Google and Microsoft return them.
//
#ifndef ZARRBITS_REMOTE_OAUTH_TOKEN_HPP
#define ZARRBITS_REMOTE_OAUTH_TOKEN_HPP

#include "remote/http_client.hpp"
#include "remote/sigv4.hpp"

#include <string>

namespace zarrbits::remote {

// The token in {"access_token": "...", "expires_in": 3599}, with its end. `ended` is the remedy if the server says that what was
// exchanged is not valid any more, `remedy` that of other errors. Throws zarrbits::error if the response has no token.
s3_credentials token_in(const http_client::response& got, const std::string& server_name, const std::string& ended,
                        const std::string& remedy);

}  // namespace zarrbits::remote

#endif
