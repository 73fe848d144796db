// SPDX-License-Identifier: BSL-1.0
#include "io/remote_url.hpp"

#include "text/percent.hpp"
#include "text/sha256.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <mutex>
#include <string_view>

namespace zarrbits::io {

namespace {

// Parameters of signatures and logins: AWS, Google, Azure, CloudFront, and what others call a token. In lower case.
bool is_signature(std::string_view parameter) {
  std::string name(parameter.substr(0, parameter.find('=')));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  static constexpr std::array signature_parameters{
      "signature", "expires", "policy", "key-pair-id", "awsaccesskeyid", "googleaccessid", "sig",     "se",    "sp",
      "sv",        "sr",      "st",     "spr",         "skoid",          "sktid",          "skt",     "ske",   "sks",
      "skv",       "ss",      "srt",    "sip",         "token",          "access_token",   "api_key", "apikey"};
  return name.starts_with("x-amz-") || name.starts_with("x-goog-") ||
         std::find(signature_parameters.begin(), signature_parameters.end(), name) != signature_parameters.end();
}

// The parameters that tell files apart, in their order.
std::string without_signature(std::string_view query) {
  std::string result;
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    if (one.empty() || is_signature(one)) continue;
    result += (result.empty() ? "" : "&");
    result += one;
  }
  return result;
}

struct secret_registry {
  std::mutex mutex;
  std::map<std::string, std::string> urls;  // by name
};

secret_registry& secrets() {
  static secret_registry instance;
  return instance;
}

// Escapes the bytes that a URL cannot have: blanks, control characters, non-ASCII.
std::string escaped(const std::string& url) {
  std::string out;
  for (const char c : url) {
    const auto u = static_cast<unsigned char>(c);
    if (u > 0x20 && u < 0x7F && std::string_view("\"<>\\^`{|}").find(c) == std::string_view::npos) {
      out += c;
      continue;
    }
    text::append_percent_escape(out, c);
  }
  return out;
}

}  // namespace

bool is_s3(const std::string& name) { return name.starts_with("s3://"); }

bool is_web(const std::string& name) { return name.starts_with("https://") || name.starts_with("http://"); }

bool any_in_s3(const std::vector<std::string>& names) { return std::any_of(names.begin(), names.end(), is_s3); }

bool any_remote(const std::vector<std::string>& names) { return std::any_of(names.begin(), names.end(), is_remote); }

std::size_t object_in_url(const std::string& name) {
  std::size_t colon = name.find(":/", name.find("://") + 3);
  while (colon != std::string::npos && name.compare(colon, 3, "://") == 0)
    colon = name.find(":/", colon + 3);  // of a URL in the query
  return colon;
}

namespace {

struct parts {
  std::string display, url;  // without secrets; with them
};

// Splits a URL without an object.
parts split(const std::string& input) {
  const std::string url = input.substr(0, input.find('#'));
  const std::size_t host = url.find("://") + 3;
  const std::size_t query = std::min(url.find('?', host), url.size()), path = std::min(url.find('/', host), query);
  const std::size_t user_end = url.rfind('@', path),
                    begin = user_end == std::string::npos || user_end < host ? host : user_end + 1;
  parts p{url.substr(0, host) + url.substr(begin, query - begin), url};
  const std::string query_text = query == url.size() ? "" : url.substr(query + 1);
  if (query_text.size() == 9 && query_text.front() == '~') return {url, url};  // a name already
  if (const std::string significant = without_signature(query_text); !significant.empty()) {
    text::sha256 sum;
    sum.add(significant);
    p.display += "?~" + sum.hex(8);
  }
  return p;
}

}  // namespace

// Names of S3, and of services that are not read, have no user: what precedes the last "@" is masked, and the name is refused
// later. The secret key in it may contain "/"; a bucket's name contains neither "@" nor ":".
std::string mask_user(const std::string& url) {
  const std::size_t scheme_end = url.find("://");
  if (scheme_end == std::string::npos || scheme_end == 0 || url.find('/') != scheme_end + 1) return url;
  const std::size_t host = scheme_end + 3, last_at = url.rfind('@');
  if (last_at == std::string::npos || last_at < host) return url;
  const std::string_view first_part = std::string_view(url).substr(host, url.find('/', host) - host);
  const std::size_t colon = first_part.find(':');
  const bool has_user =
      first_part.find('@') != std::string_view::npos || (colon != std::string_view::npos && colon + 1 < first_part.size());
  return has_user ? url.substr(0, host) + "***" + url.substr(last_at) : url;
}

std::string display_url(const std::string& url) { return is_web(url) ? split(url).display : mask_user(url); }

std::string redact_url(const std::string& name) {
  if (!is_web(name)) return mask_user(name);
  const std::size_t colon = object_in_url(name);
  const parts p = split(name.substr(0, colon));
  if (p.display != p.url) {
    secret_registry& registry = secrets();
    const std::lock_guard lock(registry.mutex);
    registry.urls[p.display] = p.url;
  }
  return p.display + (colon == std::string::npos ? "" : name.substr(colon));
}

std::string original_url(const std::string& name) {
  secret_registry& registry = secrets();
  const std::lock_guard lock(registry.mutex);
  const auto it = registry.urls.find(name);
  return it == registry.urls.end() ? name : it->second;
}

std::string full_url(const std::string& name) { return escaped(original_url(name)); }

}  // namespace zarrbits::io
