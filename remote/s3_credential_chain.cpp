// SPDX-License-Identifier: BSL-1.0
#include "remote/s3_credential_chain.hpp"

#include "remote/aws_config.hpp"
#include "remote/s3_credential_endpoints.hpp"
#include "remote/s3_credential_process.hpp"
#include "remote/s3_settings.hpp"
#include "remote/server_url.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace zarrbits::remote {

namespace {

// The line with which the AWS CLI gives the credentials of a profile that needs it.
std::string by_aws_cli(const std::string& profile) {
  return "\"credential_process = aws configure export-credentials --profile " + profile + " --format process\"";
}

// Where credentials come from, as the environment and the profile files are at this moment.
class search {
 public:
  search(const std::string& target, const remote_access& remote, const std::string& region, const std::string& ca_file)
      : target_(target), remote_(remote), region_(region), ca_file_(ca_file), profile_(profile_name(remote)) {}

  // No access key: requests are anonymous.
  s3_credentials find() const {
    if (remote_.no_sign_request) return {};
    for (const char* name : {"AWS_NO_SIGN_REQUEST", "AWS_SKIP_SIGNATURE"}) {
      if (is_true(environment_value(name))) return {};
    }
    if (is_true(profiles_.value(profile_, "no_sign_request"))) return {};
    // an option excludes the environment; AWS_PROFILE does not
    if (is_by_option() && !profiles_.contains(profile_))
      fail("there is no profile \"" + profile_ + "\" in ~/.aws/config and ~/.aws/credentials; check its name");
    if (!is_by_option()) {
      if (auto keys = keys_of_environment()) return *keys;
    }
    if (auto keys = of_profile(profile_, {})) return *keys;
    if (auto keys = container_credentials(ca_file_)) return *keys;
    if (auto keys = of_instance()) return *keys;
    fail("there are no credentials for \"" + target_ + "\"; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, add the profile \"" +
         profile_ + "\" to ~/.aws/credentials, or, if the bucket is public, use `no_sign_request`");
  }

 private:
  [[noreturn]] void fail(const std::string& sentence) const {
    throw zarrbits::error(errc::permission_denied, sentence, {target_});
  }

  static std::optional<s3_credentials> keys_of_environment() {
    s3_credentials keys{environment_value("AWS_ACCESS_KEY_ID"), environment_value("AWS_SECRET_ACCESS_KEY"),
                        environment_value("AWS_SESSION_TOKEN")};
    if (keys.access_key.empty() || keys.secret_key.empty()) return {};
    return keys;
  }

  bool is_by_option() const { return !remote_.profile.empty(); }

  std::optional<s3_credentials> web_identity_of_environment() const {
    const std::string file = environment_value("AWS_WEB_IDENTITY_TOKEN_FILE"), role = environment_value("AWS_ROLE_ARN");
    if (file.empty()) return {};
    if (role.empty()) fail("AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not; set both");
    return assume_role_with_web_identity(sts(profile_), {.arn = role, .session_name = environment_value("AWS_ROLE_SESSION_NAME")},
                                         file);
  }

  std::optional<s3_credentials> of_instance() const {
    return instance_credentials(profiles_.value(profile_, "ec2_metadata_service_endpoint"));
  }

  // The keys that stand in one file.
  static std::optional<s3_credentials> keys_in(const aws_config::section& s) {
    const auto value = [&](const char* name) {
      const auto it = s.find(name);
      return it == s.end() ? std::string() : it->second;
    };
    s3_credentials keys{value("aws_access_key_id"), value("aws_secret_access_key"), value("aws_session_token")};
    if (keys.access_key.empty() || keys.secret_key.empty()) return {};
    return keys;
  }

  sts_server sts(const std::string& profile) const {
    const std::string ignored = environment_value("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    const bool ignores_configured =
        is_true_setting(ignored.empty() ? profiles_.value(profile, "ignore_configured_endpoint_urls") : ignored);
    std::string url;
    for (const std::string& candidate : {environment_value("AWS_ENDPOINT_URL_STS"), environment_value("AWS_ENDPOINT_URL"),
                                         profiles_.value_in("services", profiles_.value(profile, "services"), "sts.endpoint_url"),
                                         profiles_.value(profile, "endpoint_url")}) {
      if (url.empty() && !ignores_configured) url = candidate;
    }
    if (url.empty()) url = "https://sts." + region_ + "." + amazon_domain(region_);
    return {checked_server(std::move(url), "the server STS", "AWS_ENDPOINT_URL_STS and AWS_ENDPOINT_URL", io::cloud::s3), region_,
            ca_file_};
  }

  // `users`: the profiles that have this one as their source.
  std::optional<s3_credentials> of_profile(const std::string& name, std::vector<std::string> users) const {
    const auto value = [&](const char* key) { return profiles_.value(name, key); };
    const auto in_credentials = keys_in(profiles_.in_credentials(name)), in_config = keys_in(profiles_.in_config(name));
    role_request role{.arn = value("role_arn"),
                      .session_name = value("role_session_name"),
                      .external_id = value("external_id"),
                      .duration = value("duration_seconds")};
    const std::string token_file = value("web_identity_token_file");
    const bool has_keys = in_credentials || in_config;
    // a profile may have itself as the source of its role: then its keys are meant
    if (!role.arn.empty() && token_file.empty() && !(has_keys && !users.empty())) return of_role(name, role, std::move(users));
    if (users.empty() && !is_by_option()) {
      if (auto keys = web_identity_of_environment()) return keys;
    }
    if (!token_file.empty()) {
      if (role.arn.empty()) fail("the profile \"" + name + "\" has web_identity_token_file, but not role_arn; add it");
      return assume_role_with_web_identity(sts(name), role, token_file);
    }
    if (auto keys = of_sso(name)) return keys;
    if (in_credentials) return in_credentials;
    if (const std::string command = value("credential_process"); !command.empty()) {
      return credentials_of_process(command, name);
    }
    if (in_config) return in_config;
    if (!value("login_session").empty())
      fail("the profile \"" + name + "\" needs a sign-in by the AWS CLI (login_session); add to it " + by_aws_cli(name));
    return {};
  }

  // Keys by a sign-in: "aws sso login" leaves a token in a file.
  std::optional<s3_credentials> of_sso(const std::string& name) const {
    const std::string session = profiles_.value(name, "sso_session");
    const auto value = [&](const char* key) {
      const std::string of_session = profiles_.value_in("sso-session", session, key);
      return of_session.empty() ? profiles_.value(name, key) : of_session;
    };
    sso_request sso{.account = profiles_.value(name, "sso_account_id"),
                    .role = profiles_.value(name, "sso_role_name"),
                    .session = session.empty() ? value("sso_start_url") : session,
                    .region = value("sso_region"),
                    .profile = name,
                    .ca_file = ca_file_};
    if (sso.account.empty() && sso.role.empty()) return {};
    for (const auto& [key, text] : {std::pair("sso_account_id", sso.account), std::pair("sso_role_name", sso.role),
                                    std::pair("sso_session", sso.session), std::pair("sso_region", sso.region)}) {
      if (text.empty()) fail("the profile \"" + name + "\" has no " + key + ", which a sign-in needs; run \"aws configure sso\"");
    }
    sso.server = environment_value("AWS_ENDPOINT_URL_SSO");
    if (sso.server.empty()) sso.server = "https://portal.sso." + sso.region + "." + amazon_domain(sso.region);
    return sso_credentials(std::move(sso));
  }

  s3_credentials of_role(const std::string& name, const role_request& role, std::vector<std::string> users) const {
    const std::string source = profiles_.value(name, "source_profile"), kind = profiles_.value(name, "credential_source");
    const std::string subject = "the profile \"" + name + "\" ";
    if (source.empty() == kind.empty())
      fail(subject + "has a role_arn, and needs either source_profile or credential_source; correct it in ~/.aws/config");
    if (!profiles_.value(name, "mfa_serial").empty())
      fail(subject + "needs the code of an MFA device (mfa_serial), for which nobody can be asked here; choose a profile with " +
           by_aws_cli(name));
    std::optional<s3_credentials> keys;
    if (!source.empty()) {
      const bool is_cycle = source == name ? !keys_in(profiles_.in_credentials(name)) && !keys_in(profiles_.in_config(name))
                                           : std::find(users.begin(), users.end(), source) != users.end();
      if (is_cycle) fail(subject + "has a role whose source leads back to it (" + source + "); correct it in ~/.aws/config");
      users.push_back(name);
      keys = of_profile(source, std::move(users));
      if (!keys) fail("the profile \"" + source + "\", the source of the role of \"" + name + "\", has no credentials; add them");
    } else {
      const bool is_known = kind == "Environment" || kind == "EcsContainer" || kind == "Ec2InstanceMetadata";
      if (!is_known) fail(subject + "has an unknown credential_source; write Environment, EcsContainer or Ec2InstanceMetadata");
      keys = kind == "Environment"    ? keys_of_environment()
             : kind == "EcsContainer" ? container_credentials(ca_file_)
                                      : of_instance();
      if (!keys) fail(subject + "has the credential_source " + kind + ", which gives no credentials here; check where this runs");
    }
    return assume_role(sts(name), role, *keys);
  }

  const std::string target_;
  const remote_access remote_;
  const std::string region_, ca_file_, profile_;
  const aws_config profiles_ = {};
};

}  // namespace

s3_credentials find_credentials(const std::string& target, const remote_access& remote, const std::string& region,
                                const std::string& ca_file) {
  s3_credentials keys = search(target, remote, region, ca_file).find();
  if (!is_header_value(keys.access_key) || !is_header_value(keys.session_token)) {
    throw zarrbits::error(errc::permission_denied,
                          "the access key or the session token for \"" + target +
                              "\" has characters that a header cannot have, such as the end of a line; set it again",
                          {target});
  }
  return keys;
}

std::string profile_name(const remote_access& remote) {
  for (const std::string& name : {remote.profile, environment_value("AWS_DEFAULT_PROFILE"), environment_value("AWS_PROFILE")}) {
    if (!name.empty()) return name;
  }
  return "default";
}

}  // namespace zarrbits::remote
