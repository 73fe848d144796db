// SPDX-License-Identifier: BSL-1.0
#include "io/remote_name.hpp"

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
  static constexpr std::array known{
      "signature", "expires", "policy", "key-pair-id", "awsaccesskeyid", "googleaccessid", "sig",     "se",    "sp",
      "sv",        "sr",      "st",     "spr",         "skoid",          "sktid",          "skt",     "ske",   "sks",
      "skv",       "ss",      "srt",    "sip",         "token",          "access_token",   "api_key", "apikey"};
  return name.starts_with("x-amz-") || name.starts_with("x-goog-") || std::find(known.begin(), known.end(), name) != known.end();
}

// The parameters that tell files apart, in their order.
std::string without_signature(std::string_view query) {
  std::string rest;
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    if (one.empty() || is_signature(one)) continue;
    rest += (rest.empty() ? "" : "&");
    rest += one;
  }
  return rest;
}

struct remembered {
  std::mutex mutex;
  std::map<std::string, std::string> urls;  // by name
};

remembered& secrets() {
  static remembered all;
  return all;
}

// What a URL cannot have as it is: blanks, control characters, what is not ASCII.
std::string escaped(const std::string& url) {
  std::string out;
  for (const char c : url) {
    const auto u = static_cast<unsigned char>(c);
    if (u > 0x20 && u < 0x7F && std::string_view("\"<>\\^`{|}").find(c) == std::string_view::npos) {
      out += c;
      continue;
    }
    text::append_percent(out, c);
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
  std::string shown, url;  // without secrets; with them
};

// Of a URL without an object.
parts split(const std::string& given) {
  const std::string url = given.substr(0, given.find('#'));
  const std::size_t host = url.find("://") + 3;
  const std::size_t query = std::min(url.find('?', host), url.size()), path = std::min(url.find('/', host), query);
  const std::size_t at = url.rfind('@', path), begin = at == std::string::npos || at < host ? host : at + 1;
  parts p{url.substr(0, host) + url.substr(begin, query - begin), url};
  const std::string after = query == url.size() ? "" : url.substr(query + 1);
  if (after.size() == 9 && after.front() == '~') return {url, url};  // a name already
  if (const std::string rest = without_signature(after); !rest.empty()) {
    text::sha256 sum;
    sum.add(rest);
    p.shown += "?~" + sum.hex(8);
  }
  return p;
}

}  // namespace

std::string shown_url(const std::string& url) { return is_web(url) ? split(url).shown : url; }

std::string public_name(const std::string& name) {
  if (!is_web(name)) return name;
  const std::size_t colon = object_in_url(name);
  const parts p = split(name.substr(0, colon));
  if (p.shown != p.url) {
    remembered& all = secrets();
    const std::lock_guard held(all.mutex);
    all.urls[p.shown] = p.url;
  }
  return p.shown + (colon == std::string::npos ? "" : name.substr(colon));
}

std::string remembered_url(const std::string& name) {
  remembered& all = secrets();
  const std::lock_guard held(all.mutex);
  const auto found = all.urls.find(name);
  return found == all.urls.end() ? name : found->second;
}

std::string secret_url(const std::string& name) { return escaped(remembered_url(name)); }

}  // namespace zarrbits::io
