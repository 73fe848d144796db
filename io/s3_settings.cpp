// SPDX-License-Identifier: BSL-1.0
#include "io/s3_settings.hpp"

#include "io/aws_config.hpp"
#include "io/remote_url.hpp"
#include "io/s3_credential_chain.hpp"
#include "io/s3_credentials.hpp"
#include "io/server_url.hpp"

#include <zarrbits/error.hpp>

#include <initializer_list>

namespace zarrbits::io {

namespace {

std::string first_of(std::initializer_list<std::string> candidates) {
  for (const std::string& c : candidates) {
    if (!c.empty()) return c;
  }
  return {};
}

}  // namespace

bool s3_settings::is_open() const { return is_plaintext_remote(url); }

std::string amazon_url(const std::string& bucket, const std::string& region) {
  const std::string domain = ".amazonaws.com" + std::string(region.starts_with("cn-") ? ".cn" : "");
  // a certificate covers one label before the domain
  return bucket.find('.') == std::string::npos ? "https://" + bucket + ".s3." + region + domain
                                               : "https://s3." + region + domain + "/" + bucket;
}

s3_settings read_s3_settings(const std::string& target, const remote_access& remote) {
  s3_settings s;
  const std::string place = target.substr(5);  // after "s3://"
  s.bucket = place.substr(0, place.find('/'));
  s.prefix = s.bucket.size() < place.size() ? place.substr(s.bucket.size() + 1) : "";
  while (!s.prefix.empty() && s.prefix.back() == '/') s.prefix.pop_back();
  if (s.bucket.empty() ||
      s.bucket.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") != std::string::npos) {
    const std::string name = display_url(target);
    if (name.find('@') != std::string::npos) {
      throw zarrbits::error(
          errc::invalid_option,
          "\"" + name +
              "\" contains a user name or a password, which it does not use; write it as \"s3://bucket/prefix\", "
              "and set the keys as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in a profile");
    }
    throw zarrbits::error(errc::invalid_option,
                          "\"" + name + "\" does not name an S3 bucket; write it as \"s3://bucket/prefix\"");
  }
  if (("/" + s.prefix + "/").find("//") != (s.prefix.empty() ? 0 : std::string::npos)) {
    throw zarrbits::error(errc::invalid_option, "\"" + target + "\" has an empty part; write it as \"s3://bucket/prefix\"");
  }

  const aws_config profiles;
  const std::string profile = profile_name(remote);
  const auto profile_value = [&](const char* name) { return profiles.value(profile, name); };
  const auto variable = environment_value;
  s.region = first_of({variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"), profile_value("region"), s.region});
  s.ca_file = first_of({remote.ca_file, variable("AWS_CA_BUNDLE"), profile_value("ca_bundle"), variable("SSL_CERT_FILE")});
  const std::string server = checked_server(
      first_of({remote.endpoint, variable("AWS_ENDPOINT_URL_S3"), variable("AWS_ENDPOINT_URL"), profile_value("endpoint_url")}),
      "the S3 server", "`endpoint` and AWS_ENDPOINT_URL");
  s.is_amazon = server.empty();
  // other servers do not put the bucket in the host name
  s.url = s.is_amazon ? amazon_url(s.bucket, s.region) : server + "/" + s.bucket;
  s.credentials = std::make_shared<credential_source>(target, remote, s.region, s.ca_file);
  return s;
}

}  // namespace zarrbits::io
