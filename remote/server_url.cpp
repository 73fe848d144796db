// SPDX-License-Identifier: BSL-1.0
#include "remote/server_url.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>

namespace zarrbits::remote {

std::string_view host_of(std::string_view url) {
  url.remove_prefix(std::min(url.size(), url.find("://") + 3));
  url = url.substr(0, url.find('/'));
  if (url.starts_with('[')) return url.substr(0, url.find(']') + 1);
  return url.substr(0, url.find(':'));
}

bool is_loopback(std::string_view host) {
  const bool address = host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
  return address || host == "localhost" || host.ends_with(".localhost") || host == "[::1]";
}

bool is_plaintext_remote(std::string_view url) { return url.starts_with("http://") && !is_loopback(host_of(url)); }

std::string key_settings(io::cloud kind) {
  switch (kind) {
    case io::cloud::google: return "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY";
    case io::cloud::azure: return "AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY";
    default: return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in a profile";
  }
}

// A password may be anywhere before an "@".
std::string checked_server(std::string url, const std::string& description, const std::string& source,
                           std::optional<io::cloud> kind) {
  while (!url.empty() && url.back() == '/') url.pop_back();
  if (url.find('@') != std::string::npos) {
    throw zarrbits::error(errc::invalid_option, "the URL of " + description +
                                                    " contains a user name or a password, which it does not use; remove them" +
                                                    (kind ? ", and set the keys as " + key_settings(*kind) : ""));
  }
  const bool web = url.starts_with("http://") || url.starts_with("https://");
  for (const char c : url) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f || c == '?' || c == '#' || c == '\\')
      throw zarrbits::error(errc::invalid_option,
                            "the URL of " + description + " has characters that a URL cannot have; check " + source);
  }
  if (!url.empty() && (!web || host_of(url).empty())) {
    throw zarrbits::error(errc::invalid_option, description + " \"" + url + "\" is not a URL; begin it with https:// or http://");
  }
  return url;
}

}  // namespace zarrbits::remote
