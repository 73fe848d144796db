// SPDX-License-Identifier: BSL-1.0
#include "convert/store/s3_settings.hpp"

#include <zarrbits/convert.hpp>

#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <string_view>

namespace zarrbits::conversion {

namespace {

using values = std::map<std::string, std::string>;

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

// One section of a file of "[section]" and "name = value" lines. Indented lines belong to settings of single services: not ours.
values read_section(const std::string& path, std::initializer_list<std::string> names) {
  values found;
  std::ifstream file(path);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#' || text.front() == ';') continue;
    if (text.front() == '[') {
      inside = false;
      for (const std::string& name : names) inside |= trimmed(text.substr(1, text.find(']') - 1)) == name;
    } else if (inside && line.front() != ' ' && line.front() != '\t') {
      const auto equals = text.find('=');
      if (equals != std::string_view::npos) found[std::string(trimmed(text.substr(0, equals)))] = trimmed(text.substr(equals + 1));
    }
  }
  return found;
}

}  // namespace

s3_settings read_s3_settings(const std::string& target, const std::string& endpoint) {
  s3_settings s;
  const std::string place = target.substr(5);  // after "s3://"
  s.bucket = place.substr(0, place.find('/'));
  s.prefix = s.bucket.size() < place.size() ? place.substr(s.bucket.size() + 1) : "";
  while (!s.prefix.empty() && s.prefix.back() == '/') s.prefix.pop_back();
  if (s.bucket.empty() || s.bucket.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") != std::string::npos) {
    throw convert_error("\"" + target + "\" names no S3 bucket; write it as \"s3://bucket/prefix\"");
  }
  if (("/" + s.prefix + "/").find("//") != (s.prefix.empty() ? 0 : std::string::npos)) {
    throw convert_error("\"" + target + "\" has an empty part; write it as \"s3://bucket/prefix\"");
  }

  const std::string home = environment("HOME");
  const std::string profile = first_of({environment("AWS_PROFILE"), environment("AWS_DEFAULT_PROFILE"), "default"});
  values secrets = read_section(first_of({environment("AWS_SHARED_CREDENTIALS_FILE"), home + "/.aws/credentials"}), {profile});
  values config = read_section(first_of({environment("AWS_CONFIG_FILE"), home + "/.aws/config"}),
                               {profile == "default" ? profile : "profile " + profile, "profile " + profile});
  s.access_key = environment("AWS_ACCESS_KEY_ID");
  s.secret_key = environment("AWS_SECRET_ACCESS_KEY");
  s.session_token = environment("AWS_SESSION_TOKEN");
  // keys of one person are not mixed with those of another; a profile that was asked for by name goes first
  if (s.access_key.empty() || s.secret_key.empty() || !environment("AWS_PROFILE").empty()) {
    for (values* from : {&secrets, &config}) {
      if ((*from)["aws_access_key_id"].empty() || (*from)["aws_secret_access_key"].empty()) continue;
      s.access_key = (*from)["aws_access_key_id"];
      s.secret_key = (*from)["aws_secret_access_key"];
      s.session_token = (*from)["aws_session_token"];
      break;
    }
  }
  if (s.access_key.empty() || s.secret_key.empty()) {
    throw convert_error("nothing says who may use \"" + target + "\"; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or have the profile \"" +
                        profile + "\" in ~/.aws/credentials");
  }
  s.region = first_of({environment("AWS_REGION"), environment("AWS_DEFAULT_REGION"), config["region"], s.region});
  std::string server = first_of({endpoint, environment("AWS_ENDPOINT_URL_S3"), environment("AWS_ENDPOINT_URL"), config["endpoint_url"]});
  while (!server.empty() && server.back() == '/') server.pop_back();
  if (!server.empty()) {
    if (!server.starts_with("http://") && !server.starts_with("https://")) {
      throw convert_error("the S3 server \"" + server + "\" is no URL; begin it with https:// or http://");
    }
    s.url = server + "/" + s.bucket;  // such servers have no names for their buckets
  } else {
    const std::string domain = ".amazonaws.com" + std::string(s.region.starts_with("cn-") ? ".cn" : "");
    // a certificate is good for one label before the domain
    s.url = s.bucket.find('.') == std::string::npos ? "https://" + s.bucket + ".s3." + s.region + domain : "https://s3." + s.region + domain + "/" + s.bucket;
  }
  return s;
}

}  // namespace zarrbits::conversion
