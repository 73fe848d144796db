// SPDX-License-Identifier: BSL-1.0
#include "remote/s3_access.hpp"

#include <zarrbits/error.hpp>
#include <zarrbits/source_name.hpp>

#include <sys/resource.h>

#ifdef ZARRBITS_WITH_S3
#include "remote/aws_config.hpp"
#include "remote/s3_credentials.hpp"
#include "remote/s3_settings.hpp"
#include "remote/server_url.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#endif

namespace zarrbits::remote {

void prevent_core_dumps() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = 0;
  ::setrlimit(RLIMIT_CORE, &limit);
}

#ifdef ZARRBITS_WITH_S3

namespace {

// True if ~/.netrc, or $NETRC, has a password for this host.
bool has_netrc_entry(const std::string& host) {
  std::string name = environment_value("NETRC");
  if (name.empty()) name = environment_value("HOME") + "/.netrc";
  std::ifstream file(name);
  bool names_host = false;
  for (std::string word; file >> word; names_host = word == "machine") {
    if (word == "default" || (names_host && word == host)) return true;
  }
  return false;
}

// What a source at http:// sends for all to read; "" for nothing.
std::string plaintext_secret(const std::string& name, const remote_access& remote) {
  if (!io::is_web(name) || !is_plaintext_remote(name)) return {};
  if (!remote.headers.empty() || !environment_value("ZARRBITS_HEADERS").empty()) return "the headers of `headers`";
  if (io::original_url(name) != name) return "a query, or a user and a password,";
  return has_netrc_entry(std::string(host_of(name))) ? "the password of ~/.netrc" : "";
}

}  // namespace

void init_s3(const std::vector<std::string>& sources, const std::string& store, const remote_access& remote,
             const std::function<void(const std::string&)>& warning) {
  std::vector<std::string> names = sources;
  names.push_back(store);
  std::set<std::string> buckets, warned;
  for (const std::string& name : names) {
    const std::string secret = warning ? plaintext_secret(name, remote) : "";
    if (!secret.empty() && warned.insert(std::string(host_of(name))).second)
      warning("\"" + name + "\" is plain http to another machine: " + secret + " can be read in transit; use https");
    if (!io::is_object_store(name) || !buckets.insert(name.substr(0, name.find('/', name.find("://") + 3))).second) continue;
    if (!remote.endpoint.empty() && std::any_of(buckets.begin(), buckets.end(), [&](const std::string& other) {
          return io::cloud_of(other) != io::cloud_of(name);
        })) {
      throw zarrbits::error(errc::invalid_option,
                            "`endpoint` cannot be the server of names at several of s3://, gs:// and az://; remove it, and set "
                            "AWS_ENDPOINT_URL_S3, STORAGE_EMULATOR_HOST or AZURE_STORAGE_ENDPOINT",
                            {name});
    }
    const s3_settings settings = read_s3_settings(name, remote);
    const s3_credentials keys = settings.credentials->current();
    if (warning && settings.is_open() && keys.bearer.empty() && keys.sas.empty()) {  // these are refused
      warning("\"" + settings.url + "\" is plain http: the traffic can be read and changed in transit" +
              (keys.session_token.empty() ? "" : ", and the session token can be stolen") +
              "; use https, with AWS_CA_BUNDLE if the server's certificate is self-signed");
    }
    if (warning && !keys.plaintext_server.empty()) {
      warning("the web identity token goes to \"" + keys.plaintext_server +
              "\" by plain http: whoever reads it in transit can use it; use https");
    }
  }
}

#else

void init_s3(const std::vector<std::string>&, const std::string&, const remote_access&,
             const std::function<void(const std::string&)>&) {}
void cancel_s3_retries() noexcept {}
void set_wait_listener(std::function<void(const std::string&)>) {}

#endif

}  // namespace zarrbits::remote

#ifndef ZARRBITS_WITH_S3
std::vector<std::string> zarrbits::find_s3_sources(const std::string& pattern, const remote_access&) {
  throw zarrbits::error(
      errc::unsupported,
      "this zarrbits was built without libcurl and cannot look for \"" + pattern + "\"; build it with -DZARRBITS_S3=ON",
      {pattern});
}
#endif
