// SPDX-License-Identifier: BSL-1.0
#include "io/remote_url.hpp"

#include "text/node_names.hpp"
#include "text/percent.hpp"
#include "text/sha256.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace zarrbits::io {

namespace {

// Parameters of one kind of signed URL, in lower case; "x-amz-*" is every parameter that begins so. They are different each time
// that a URL is signed. Where `marks` is set, one of these has to be there, too: the other names are too short to mean only that.
struct signature_kind {
  std::vector<std::string_view> marks, parameters;
};

const std::vector<signature_kind>& signature_kinds() {
  static const std::vector<signature_kind> kinds{
      // Amazon S3 (signatures 4 and 2) and whoever speaks its language, CloudFront with Earthdata's user, SDKs
      {{},
       {"x-amz-*", "awsaccesskeyid", "signature", "key-pair-id", "policy", "hash-algorithm", "a-userid", "x-id",
        "response-cache-control", "response-content-disposition", "response-content-encoding", "response-content-language",
        "response-content-type", "response-expires"}},
      {{}, {"x-goog-*", "googleaccessid"}},                  // Google Cloud Storage
      {{"signature"}, {"keyname", "urlprefix", "expires"}},  // Google's CDN
      {{"x-amz-signature", "signature", "policy", "token", "hmac", "md5", "x-goog-signature"}, {"expires"}},
      {{"sig"},  // Azure: shared access signatures of services, accounts and users
       {"sig", "se", "sp",  "sv",    "sr",    "st",   "spr", "skoid", "sktid", "skt",  "ske",  "sks",  "skv",     "ss",    "srt",
        "sip", "si", "sdd", "saoid", "suoid", "scid", "ses", "rscc",  "rscd",  "rsce", "rscl", "rsct", "skdutid", "sduoid"}},
      {{}, {"temp_url_*"}},  // OpenStack Swift
      {{"temp_url_sig"}, {"filename", "inline"}},
      {{}, {"x-oss-*", "ossaccesskeyid", "security-token"}},                                                    // Alibaba OSS
      {{}, {"q-sign-*", "q-ak", "q-key-time", "q-header-list", "q-url-param-list", "q-signature", "x-cos-*"}},  // Tencent COS
      {{}, {"x-obs-*", "x-tos-*", "x-bce-*", "kssaccesskeyid"}},  // Huawei OBS, Volcengine TOS, Baidu BOS, Kingsoft KS3
      {{"signature"}, {"accesskeyid"}},
      {{"expires"}, {"md5"}},                                                                     // nginx's secure_link
      {{"wssecret"}, {"wssecret", "wstime"}},                                                     // Wangsu
      {{}, {"hdnea", "hdnts", "__token__", "__gda__", "tempauth", "authz", "auth_key", "_upt"}},  // Akamai, SharePoint, dCache
      // logins
      {{},
       {"token", "access_token", "api_key", "apikey", "api-key", "x-api-key", "authorization", "jwt", "sign", "auth_token",
        "bearer", "sessionid", "session_token", "password", "private_token", "key_token"}},
  };
  return kinds;
}

bool matches(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
}

std::string name_of(std::string_view parameter) { return text::case_fold(parameter.substr(0, parameter.find('='))); }

// The parameters that tell files apart, in their order.
std::string without_signature(std::string_view query) {
  std::vector<std::pair<std::string, std::string_view>> parameters;  // with their names
  while (!query.empty()) {
    const std::string_view parameter = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), parameter.size() + 1));
    if (!parameter.empty()) parameters.emplace_back(name_of(parameter), parameter);
  }
  const auto has_any = [&](const std::vector<std::string_view>& names) {
    return names.empty() || std::any_of(parameters.begin(), parameters.end(), [&](const auto& p) {
             return std::find(names.begin(), names.end(), p.first) != names.end();
           });
  };
  std::vector<std::string_view> patterns;
  for (const signature_kind& kind : signature_kinds()) {
    if (has_any(kind.marks)) patterns.insert(patterns.end(), kind.parameters.begin(), kind.parameters.end());
  }
  std::string result;
  for (const auto& [name, parameter] : parameters) {
    if (std::any_of(patterns.begin(), patterns.end(), [&name = name](std::string_view p) { return matches(p, name); })) continue;
    result += (result.empty() ? "" : "&");
    result += parameter;
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

bool is_azure(const std::string& name) {
  return name.starts_with("az://") || name.starts_with("abfs://") || name.starts_with("abfss://");
}

cloud cloud_of(const std::string& name) {
  return is_azure(name) ? cloud::azure : name.starts_with("gs://") ? cloud::google : cloud::s3;
}

bool is_object_store(const std::string& name) { return name.starts_with("s3://") || name.starts_with("gs://") || is_azure(name); }

bool may_be_within(const std::string& inner, const std::string& outer) {
  std::string accounts[2], paths[2];
  for (std::size_t i = 0; i < 2; ++i) {
    std::string& path = paths[i] = i == 0 ? inner : outer;
    if (is_azure(path)) {
      path.erase(0, path.find("://") + 3);
      const std::size_t slash = std::min(path.find('/'), path.size()), account = path.find('@');
      if (account < slash) {
        accounts[i] = path.substr(account, path.find('.') - account);
        path.erase(account, slash - account);
      }
      path.insert(0, "az://");
    }
    while (path.size() > 1 && path.back() == '/') path.pop_back();
  }
  if (!accounts[0].empty() && !accounts[1].empty() && accounts[0] != accounts[1]) return false;
  return paths[0] == paths[1] || paths[0].starts_with(paths[1] + "/");
}

bool is_web(const std::string& name) { return name.starts_with("https://") || name.starts_with("http://"); }

bool any_in_object_store(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), is_object_store);
}

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

// "~0123abcd": what a name has in place of the query.
bool is_hash(std::string_view query) { return query.size() == 9 && query.front() == '~'; }

// Splits a URL without an object.
parts split(const std::string& input) {
  const std::string url = input.substr(0, input.find('#'));
  const std::size_t host = url.find("://") + 3;
  const std::size_t query = std::min(url.find('?', host), url.size()), path = std::min(url.find('/', host), query);
  // a password with a slash, which should be escaped, looks like a port with other characters than digits
  const std::string_view port = std::string_view(url).substr(host, path - host);
  const bool is_password = port.find(':') != port.npos && !port.ends_with(']') &&
                           port.substr(port.rfind(':') + 1).find_first_not_of("0123456789") != port.npos;
  const std::size_t user_end = url.rfind('@', is_password ? query : path),
                    begin = user_end == std::string::npos || user_end < host ? host : user_end + 1;
  parts p{url.substr(0, host) + url.substr(begin, query - begin), url};
  const std::string query_text = query == url.size() ? "" : url.substr(query + 1);
  if (is_hash(query_text)) return {url, url};  // a name already
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
  if (is_azure(url)) {
    const std::size_t query = url.find('?');
    if (query != std::string::npos && text::case_fold(url.substr(query)).find("sig=") != std::string::npos)
      return mask_user(url.substr(0, query)) + std::string(masked_query);
  }
  const std::size_t host = scheme_end + 3, last_at = url.rfind('@');
  if (last_at == std::string::npos || last_at < host) return url;
  const std::string_view first_part = std::string_view(url).substr(host, url.find('/', host) - host);
  const std::size_t colon = first_part.find(':');
  // a container of Azure's is at an account
  const bool has_user = (first_part.find('@') != std::string_view::npos &&
                         (!is_azure(url) || std::count(first_part.begin(), first_part.end(), '@') > 1)) ||
                        (colon != std::string_view::npos && colon + 1 < first_part.size());
  return has_user ? url.substr(0, host) + "***" + url.substr(last_at) : url;
}

std::string display_url(const std::string& url) { return is_web(url) ? split(url).display : mask_user(url); }

bool has_hashed_query(const std::string& name) {
  const std::size_t query = name.rfind('?');
  return is_web(name) && query != std::string::npos && is_hash(std::string_view(name).substr(query + 1));
}

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
