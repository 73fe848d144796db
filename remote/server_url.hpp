// SPDX-License-Identifier: BSL-1.0
//
// The URL of a server, as an option, a variable or a profile gives it.
//
#ifndef ZARRBITS_REMOTE_SERVER_URL_HPP
#define ZARRBITS_REMOTE_SERVER_URL_HPP

#include "io/remote_url.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace zarrbits::remote {

// "host" from "http://host:80/path"; "[::1]" with its brackets.
std::string_view host_of(std::string_view url);
// True for "localhost", and for names and addresses below it.
bool is_loopback(std::string_view host);
// True if requests can be read in transit: plain http to another machine.
bool is_plaintext_remote(std::string_view url);

// The URL without "/" at its end; "" stays "". Throws zarrbits::error if it is not a URL, or has a user: `description` is what it
// is of, `source` where it may come from, `kind` whose keys are meant by a user in it, for the sentence, which never repeats a
// password.
std::string checked_server(std::string url, const std::string& description, const std::string& source,
                           std::optional<io::cloud> kind = {});
// Where keys are set, for sentences.
std::string key_settings(io::cloud kind);

}  // namespace zarrbits::remote

#endif
