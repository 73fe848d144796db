// SPDX-License-Identifier: BSL-1.0
#include "remote/s3_settings.hpp"

#include "io/remote_url.hpp"
#include "remote/aws_config.hpp"
#include "remote/azure_account.hpp"
#include "remote/http_client.hpp"
#include "remote/s3_credential_chain.hpp"
#include "remote/s3_credentials.hpp"
#include "remote/server_url.hpp"
#include "text/node_names.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace zarrbits::remote {

namespace {

// For sentences.
std::string example_of(io::cloud kind) {
  return kind == io::cloud::azure    ? "\"az://container/prefix\""
         : kind == io::cloud::google ? "\"gs://bucket/prefix\""
                                     : "\"s3://bucket/prefix\"";
}

std::string first_of(std::initializer_list<std::string> candidates) {
  for (const std::string& c : candidates) {
    if (!c.empty()) return c;
  }
  return {};
}

}  // namespace

std::string s3_settings::server_name() const {
  return is_azure() ? "the Azure server" : is_google() ? "the Cloud Storage server" : "the S3 server";
}

std::string s3_settings::bucket_kind() const {
  return is_azure() ? "Azure container" : is_google() ? "Cloud Storage bucket" : "S3 bucket";
}

bool s3_settings::is_open() const { return is_plaintext_remote(url); }

std::string amazon_domain(const std::string& region) {
  struct partition {
    std::string_view prefix, domain;
  };
  static constexpr partition partitions[] = {{"cn-", "amazonaws.com.cn"},    {"eusc-", "amazonaws.eu"},
                                             {"us-iso-", "c2s.ic.gov"},      {"us-isob-", "sc2s.sgov.gov"},
                                             {"eu-isoe-", "cloud.adc-e.uk"}, {"us-isof-", "csp.hci.ic.gov"}};
  for (const partition& p : partitions) {
    if (region.starts_with(p.prefix)) return std::string(p.domain);
  }
  return "amazonaws.com";
}

std::string amazon_url(const std::string& bucket, const std::string& region, const amazon_endpoint& endpoint) {
  std::string server = endpoint.fips ? "s3-fips" : "s3";
  if (endpoint.accelerate) server = "s3-accelerate";
  if (endpoint.dualstack) server += ".dualstack";
  // as the AWS tools have it, the first region is in the name only of newer servers
  const bool is_first = region == "us-east-1" && !endpoint.fips && !endpoint.dualstack;
  if (!endpoint.accelerate && !is_first) server += "." + region;
  server += "." + amazon_domain(region);
  // a certificate covers one label before the domain
  const bool is_label = bucket.size() > 2 &&
                        bucket.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos &&
                        bucket.front() != '-' && bucket.back() != '-';
  return is_label && !endpoint.path_style ? "https://" + bucket + "." + server : "https://" + server + "/" + bucket;
}

namespace {

// The keys of buckets at Google belong to no region.
void read_google_settings(s3_settings& s, const std::string& target, const remote_access& remote) {
  std::string emulator = environment_value("STORAGE_EMULATOR_HOST");
  if (!emulator.empty() && emulator.find("://") == std::string::npos) emulator.insert(0, "http://");
  const std::string server = checked_server(first_of({remote.endpoint, emulator, "https://storage.googleapis.com"}),
                                            "the Cloud Storage server", "`endpoint` and STORAGE_EMULATOR_HOST", s.kind);
  s.region = "auto";
  s.url = server + "/" + s.bucket;
  s.ca_file = ca_file_of(remote);
  s.credentials = std::make_shared<credential_source>(target, remote, s.region, s.ca_file);
}

void read_azure_settings(s3_settings& s, const std::string& target, const remote_access& remote) {
  const azure_account account = find_azure_account(target, remote);
  s.bucket = s.bucket.substr(0, s.bucket.find('@'));
  s.region.clear();
  s.url = account.url + "/" + percent_encoded(s.bucket, false);
  s.ca_file = ca_file_of(remote);
  s.credentials = std::make_shared<credential_source>(target, remote, s.region, s.ca_file);
}

}  // namespace

s3_settings read_s3_target(const std::string& target, remote_access remote) {
  remote.no_sign_request = false;
  s3_settings s = read_s3_settings(target, remote);
  if (("/" + s.prefix + "/").find("//") != (s.prefix.empty() ? 0 : std::string::npos)) {
    throw zarrbits::error(errc::invalid_option, "\"" + target + "\" has an empty part; write it as " + example_of(s.kind));
  }
  return s;
}

s3_settings read_s3_settings(const std::string& target, const remote_access& remote) {
  s3_settings s;
  s.kind = io::cloud_of(target);
  s.request_payer = remote.request_payer;
  const std::string example = example_of(s.kind);
  const std::size_t place = target.find("://") + 3, end = std::min(target.find('/', place), target.size());
  s.bucket = target.substr(place, end - place);
  s.root = target.substr(0, end) + "/";
  s.prefix = target.substr(std::min(end + 1, target.size()));
  while (!s.prefix.empty() && s.prefix.back() == '/') s.prefix.pop_back();
  if (s.is_azure()) {
    read_azure_settings(s, target, remote);
    return s;
  }
  if (s.bucket.empty() ||
      s.bucket.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") != std::string::npos) {
    const std::string name = io::display_url(target);
    if (name.find('@') != std::string::npos) {
      throw zarrbits::error(errc::invalid_option,
                            "\"" + name + "\" contains a user name or a password, which it does not use; write it as " + example +
                                ", and set the keys as " + key_settings(s.kind));
    }
    throw zarrbits::error(errc::invalid_option, "\"" + name + "\" does not name " + (s.is_google() ? "a " : "an ") +
                                                    s.bucket_kind() + "; write it as " + example);
  }
  if (s.is_google()) {
    read_google_settings(s, target, remote);
    return s;
  }

  // GDAL's value, and obstore's
  const std::string payer = environment_value("AWS_REQUEST_PAYER");
  s.request_payer |= payer == "requester" || is_true(payer);
  const aws_config profiles;
  const std::string profile = profile_name(remote);
  const auto profile_value = [&](const char* name) { return profiles.value(profile, name); };
  const auto variable = environment_value;
  s.region = first_of({variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"), profile_value("region"), s.region});
  s.ca_file = ca_file_of(remote, profile_value("ca_bundle"));
  const auto setting = [&](const char* name, const char* in_profile) {
    const std::string value = variable(name);
    return is_true_setting(value.empty() ? profile_value(in_profile) : value);
  };
  std::string configured;
  if (!setting("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "ignore_configured_endpoint_urls")) {
    const std::string services = profile_value("services");
    if (!services.empty() && profiles.in_config("[services " + services + "]").empty()) {
      throw zarrbits::error(errc::invalid_option, "the profile \"" + profile + "\" names the services \"" + services +
                                                      "\", but ~/.aws/config has no [services " + services + "]; correct it");
    }
    configured = first_of({variable("AWS_ENDPOINT_URL_S3"), variable("AWS_ENDPOINT_URL"),
                           profiles.value_in("services", services, "s3.endpoint_url"), profile_value("endpoint_url")});
  }
  const std::string server =
      checked_server(first_of({remote.endpoint, configured}), "the S3 server", "`endpoint` and AWS_ENDPOINT_URL", s.kind);
  s.is_amazon = server.empty();
  const std::string style = text::case_fold(profile_value("s3.addressing_style"));
  s.amazon = {.fips = setting("AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint"),
              .dualstack = setting("AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint") ||
                           is_true_setting(profile_value("s3.use_dualstack_endpoint")),
              .accelerate = is_true_setting(profile_value("s3.use_accelerate_endpoint")),
              .path_style = style == "path"};
  // other servers have the bucket in their name only if that is asked for
  const std::size_t host = server.find("://") + 3;
  s.url = s.is_amazon          ? amazon_url(s.bucket, s.region, s.amazon)
          : style == "virtual" ? server.substr(0, host) + s.bucket + "." + server.substr(host)
                               : server + "/" + s.bucket;
  s.credentials = std::make_shared<credential_source>(target, remote, s.region, s.ca_file);
  return s;
}

}  // namespace zarrbits::remote
