// SPDX-License-Identifier: BSL-1.0
#include "io/s3_settings.hpp"

#include "io/files.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <initializer_list>
#include <map>
#include <string_view>
#include <unistd.h>

namespace zarrbits::conversion {

namespace {

constexpr std::size_t longest_file = 1 << 20;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string first_of(std::initializer_list<std::string> candidates) {
  for (const std::string& c : candidates) {
    if (!c.empty()) return c;
  }
  return {};
}

std::string_view trimmed(std::string_view s) {
  const auto first = s.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(" \t\r") - first + 1);
}

// One section of a file of "[section]" and "name = value" lines. It contains secret keys: it is kept separately, and never enters
// the heap.
class profile_section {
 public:
  profile_section(const std::string& path, std::initializer_list<std::string> names) {
    const file_descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return;
    file_ = secret_bytes(longest_file);
    for (ssize_t n = 0; file_.size() < file_.capacity(); file_.resize(file_.size() + static_cast<std::size_t>(n))) {
      n = ::read(fd.get(), file_.data() + file_.size(), file_.capacity() - file_.size());
      if (n <= 0) break;
    }
    parse(file_.view(), names);
  }
  // "" if there is none.
  std::string_view operator[](std::string_view name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::string_view() : found->second;
  }

 private:
  // Indented lines are settings of single services, which we do not need.
  void parse(std::string_view file, std::initializer_list<std::string> names) {
    bool inside = false;
    while (!file.empty()) {
      const std::string_view line = file.substr(0, file.find('\n')), text = trimmed(line);
      file.remove_prefix(std::min(file.size(), line.size() + 1));
      if (text.empty() || text.front() == '#' || text.front() == ';') continue;
      if (text.front() == '[') {
        inside = false;
        for (const std::string& name : names) inside |= trimmed(text.substr(1, text.find(']') - 1)) == name;
      } else if (inside && line.front() != ' ' && line.front() != '\t') {
        const auto equals = text.find('=');
        if (equals != std::string_view::npos) values_[trimmed(text.substr(0, equals))] = trimmed(text.substr(equals + 1));
      }
    }
  }
  secret_bytes file_;
  std::map<std::string_view, std::string_view> values_;
};

// "host" from "http://host:80/path".
std::string_view host_of(std::string_view url) {
  url.remove_prefix(std::min(url.size(), url.find("://") + 3));
  url = url.substr(0, url.find('/'));
  if (url.starts_with('[')) return url.substr(0, url.find(']') + 1);
  return url.substr(0, url.find(':'));
}

// Never repeats a password: it may be anywhere before an "@".
std::string checked_server(std::string server) {
  while (!server.empty() && server.back() == '/') server.pop_back();
  if (server.find('@') != std::string::npos) {
    throw zarrbits::error(
        errc::invalid_option,
        "the URL of the S3 server contains a user name or a password, which S3 does not use; leave them out, and give the keys "
        "as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in a profile");
  }
  const bool web = server.starts_with("http://") || server.starts_with("https://");
  for (const char c : server) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f || c == '?' || c == '#' || c == '\\')
      throw zarrbits::error(
          errc::invalid_option,
          "the URL of the S3 server has characters that a URL cannot have; check `endpoint` and AWS_ENDPOINT_URL");
  }
  if (!server.empty() && (!web || host_of(server).empty())) {
    throw zarrbits::error(errc::invalid_option,
                          "the S3 server \"" + server + "\" is not a URL; begin it with https:// or http://");
  }
  return server;
}

}  // namespace

bool s3_settings::is_open() const {
  if (!url.starts_with("http://")) return false;
  const std::string_view host = host_of(url);
  const bool loopback = host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
  return !loopback && host != "localhost" && !host.ends_with(".localhost") && host != "[::1]";
}

s3_settings read_s3_settings(const std::string& target, const std::string& endpoint, secret_bytes* secret_key) {
  s3_settings s;
  const std::string place = target.substr(5);  // after "s3://"
  s.bucket = place.substr(0, place.find('/'));
  s.prefix = s.bucket.size() < place.size() ? place.substr(s.bucket.size() + 1) : "";
  while (!s.prefix.empty() && s.prefix.back() == '/') s.prefix.pop_back();
  if (s.bucket.empty() ||
      s.bucket.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") != std::string::npos) {
    throw zarrbits::error(errc::invalid_option,
                          "\"" + target + "\" does not name an S3 bucket; write it as \"s3://bucket/prefix\"");
  }
  if (("/" + s.prefix + "/").find("//") != (s.prefix.empty() ? 0 : std::string::npos)) {
    throw zarrbits::error(errc::invalid_option, "\"" + target + "\" has an empty part; write it as \"s3://bucket/prefix\"");
  }

  const std::string home = environment("HOME");
  const std::string profile = first_of({environment("AWS_PROFILE"), environment("AWS_DEFAULT_PROFILE"), "default"});
  const profile_section secrets(first_of({environment("AWS_SHARED_CREDENTIALS_FILE"), home + "/.aws/credentials"}), {profile});
  const profile_section config(first_of({environment("AWS_CONFIG_FILE"), home + "/.aws/config"}),
                               {profile == "default" ? profile : "profile " + profile, "profile " + profile});
  const auto ours = [&](const char* name) { return std::string(config[name]); };
  s.region = first_of({environment("AWS_REGION"), environment("AWS_DEFAULT_REGION"), ours("region"), s.region});
  s.ca_file = first_of({environment("AWS_CA_BUNDLE"), ours("ca_bundle")});
  // keys of different people are never mixed; a profile that is requested by name takes precedence
  environment_keys& given = environment_keys::instance();
  if (!given.complete() || !environment("AWS_PROFILE").empty()) {
    for (const profile_section* from : {&secrets, &config}) {
      const std::string_view access = (*from)["aws_access_key_id"], secret = (*from)["aws_secret_access_key"];
      if (access.empty() || secret.empty()) continue;
      s.access_key = access;
      s.session_token = (*from)["aws_session_token"];
      s.keys = std::make_shared<const signing_keys>(secret, s.region);
      if (secret_key) *secret_key = secret_bytes(secret);
      break;
    }
  }
  if (!s.keys && given.complete()) {
    s.access_key = given.access_key();
    s.session_token = given.session_token();
    s.keys = given.signing(s.region);
    if (secret_key) *secret_key = given.secret_key();
  }
  if (!s.keys) {
    throw zarrbits::error(errc::permission_denied,
                          "there are no credentials for \"" + target +
                              "\"; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or add the profile \"" + profile +
                              "\" to ~/.aws/credentials",
                          {target});
  }
  const std::string server = checked_server(
      first_of({endpoint, environment("AWS_ENDPOINT_URL_S3"), environment("AWS_ENDPOINT_URL"), ours("endpoint_url")}));
  if (!server.empty()) {
    s.url = server + "/" + s.bucket;  // these servers do not put the bucket in the host name
  } else {
    const std::string domain = ".amazonaws.com" + std::string(s.region.starts_with("cn-") ? ".cn" : "");
    // a certificate covers one label before the domain
    s.url = s.bucket.find('.') == std::string::npos ? "https://" + s.bucket + ".s3." + s.region + domain
                                                    : "https://s3." + s.region + domain + "/" + s.bucket;
  }
  return s;
}

}  // namespace zarrbits::conversion
