// SPDX-License-Identifier: BSL-1.0
#include "remote/s3_credential_endpoints.hpp"

#include "remote/aws_config.hpp"
#include "remote/http_client.hpp"
#include "remote/server_url.hpp"
#include "remote/xml.hpp"
#include "text/json_text.hpp"
#include "text/node_names.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <map>

namespace zarrbits::remote {

namespace {

constexpr std::size_t max_response_bytes = 256 << 10, max_value_bytes = 32 << 10;

[[noreturn]] void fail(const std::string& sentence, errc code = errc::permission_denied) {
  throw zarrbits::error(code, sentence);
}

s3_credentials checked(s3_credentials keys, bool temporary, const std::string& expiration, const std::string& source) {
  const bool is_complete = !keys.access_key.empty() && !keys.secret_key.empty() && (!temporary || !keys.session_token.empty());
  if (!is_complete || !is_header_value(keys.access_key) || !is_header_value(keys.session_token) ||
      keys.secret_key.size() > max_value_bytes) {
    fail(source + " did not return a complete set of credentials; ask who runs it");
  }
  if (!expiration.empty() || temporary) {
    keys.expires = parse_expiration(expiration);
    if (!keys.expires) fail(source + " does not say when its credentials end; ask who runs it");
    if (*keys.expires <= std::chrono::system_clock::now())
      fail(source + " gave credentials that have ended (" + expiration + "); get new ones, and check the clock");
  }
  return keys;
}

std::string small_file(const std::string& path, const std::string& description) {
  const auto content = read_small_file(path, max_value_bytes + 1);
  if (!content) fail("cannot read \"" + path + "\", " + description + "; check that it is there");
  std::string text = *content;
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  if (text.empty() || !is_header_value(text)) {
    fail("\"" + path + "\", " + description + ", is not a token; check that it is whole");
  }
  return text;
}

}  // namespace

http_client::response ask_for_credentials(http_client& client, http_client::request r, unsigned attempts,
                                          const std::string& server_name) {
  r.max_body_bytes = max_response_bytes;
  const double patience = r.timeout;
  for (retry_policy tries;;) {
    retry_policy::throw_if_cancelled(server_name);
    if (patience <= 0) r.timeout = tries.timeout();
    http_client::response got = client.send(r);
    const bool retry = got.error ? got.transient : is_transient(got.status);
    if (retry && tries.attempts() < attempts && tries.wait(got.summary() + " from " + server_name)) continue;
    if (got.error) {
      fail(server_name + " cannot be reached for credentials" + tries.attempts_text() + ": " + got.reason +
               (got.certificate_remedy.empty() ? "; check its URL and the network" : got.certificate_remedy),
           errc::server_failed);
    }
    return got;
  }
}

namespace {

s3_credentials ask_sts(const sts_server& sts, const std::string& action, const role_request& role,
                       std::map<std::string, std::string> parameters, const s3_credentials& source) {
  parameters["Action"] = action;
  parameters["Version"] = "2011-06-15";
  parameters["RoleArn"] = role.arn;
  parameters["RoleSessionName"] =
      role.session_name.empty() ? "zarrbits-" + std::to_string(std::time(nullptr)) : role.session_name;
  if (!role.duration.empty()) parameters["DurationSeconds"] = role.duration;
  std::string form;
  for (const auto& [name, value] : parameters) form += (form.empty() ? "" : "&") + name + "=" + percent_encoded(value, false);

  const std::size_t host = sts.url.find("://") + 3, path = std::min(sts.url.find('/', host), sts.url.size());
  const auto body = std::as_bytes(std::span(form.data(), form.size()));
  const std::string server_name = "STS at " + sts.url;
  http_client client(sts.ca_file);
  http_client::request r{.method = "POST", .url = sts.url + (path == sts.url.size() ? "/" : ""), .body = body};
  r.headers = signed_headers({.method = "POST",
                              .host = sts.url.substr(host, path - host),
                              .path = path == sts.url.size() ? "/" : sts.url.substr(path),
                              .headers = {{"content-type", "application/x-www-form-urlencoded"}},
                              .body = body},
                             source, sts.region, "sts");
  const auto got = ask_for_credentials(client, std::move(r), 3, server_name);
  const auto xml = parse_xml(got.body);
  const auto inner = [](const xml_element* in, std::string_view name) -> const xml_element* {
    if (!in) return nullptr;
    const auto it = std::find_if(in->elements.begin(), in->elements.end(), [&](const xml_element& e) { return e.name == name; });
    return it == in->elements.end() ? nullptr : &*it;
  };
  const xml_element* const root = xml ? &*xml : nullptr;
  if (got.status != 200) {
    std::string reason = std::to_string(got.status);
    if (const xml_element* error = inner(root, "Error")) {
      reason += " " + error->text_of("Code").substr(0, 100);
      // the message of a request with a web identity could repeat its token
      const std::string message = source.is_anonymous() ? "" : error->text_of("Message").substr(0, 200);
      if (!message.empty()) reason += " (" + message + ")";
    }
    fail(server_name + " refuses the role \"" + role.arn + "\": " + reason + "; check the role and whom it trusts");
  }
  const xml_element* const keys = inner(inner(root, action + "Result"), "Credentials");
  if (!keys) fail(server_name + " did not return a complete set of credentials; ask who runs it");
  return checked({keys->text_of("AccessKeyId"), keys->text_of("SecretAccessKey"), keys->text_of("SessionToken")}, true,
                 keys->text_of("Expiration"), server_name);
}

double number_of(const char* variable, double otherwise, double min_value, double max_value) {
  const double value = std::strtod(environment_value(variable).c_str(), nullptr);
  return value > 0 ? std::clamp(value, min_value, max_value) : otherwise;
}

}  // namespace

std::optional<std::chrono::system_clock::time_point> parse_expiration(const std::string& text) {
  std::tm utc{};
  const char* cursor = text.size() > 40 ? nullptr : ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (!cursor) return {};
  if (*cursor == '.') {
    for (++cursor; std::isdigit(static_cast<unsigned char>(*cursor)); ++cursor) {
    }
  }
  long offset = 0;
  if (*cursor == 'Z') {
    ++cursor;
  } else if (*cursor == '+' || *cursor == '-') {
    const std::string_view zone(cursor);
    const std::size_t minutes = zone.size() == 6 && zone[3] == ':' ? 4 : 3;
    if (zone.size() != minutes + 2) return {};
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}, minutes, minutes + 1}) {
      if (!std::isdigit(static_cast<unsigned char>(zone[i]))) return {};
    }
    const auto two = [&](std::size_t i) { return 10L * (zone[i] - '0') + (zone[i + 1] - '0'); };
    offset = (two(1) * 60 + two(minutes)) * (*cursor == '+' ? 60 : -60);
    cursor += zone.size();
  }
  if (*cursor) return {};
  // nanoseconds in 64 bits end in 2262; "9999-12-31T23:59:59Z" stands for never
  constexpr std::time_t first_of_2200 = 7'258'118'400;
  return std::chrono::system_clock::from_time_t(std::clamp<std::time_t>(::timegm(&utc) - offset, 0, first_of_2200));
}

s3_credentials credentials_in_json(std::string_view text, const char* token, bool temporary, const std::string& source) {
  const text::json document = text.size() > max_response_bytes ? text::json() : text::parse_untrusted_json(text);
  if (!document.is_object()) fail(source + " did not return credentials as JSON; ask who runs it");
  const auto member = [&](const char* name) -> std::string {
    const auto it = document.find(name);
    if (it == document.end() || it->is_null()) return {};
    if (!it->is_string()) fail(source + " gave a \"" + name + "\" that is not a text; ask who runs it");
    return it->get<std::string>();
  };
  return checked({member("AccessKeyId"), member("SecretAccessKey"), member(token)}, temporary, member("Expiration"), source);
}

s3_credentials assume_role(const sts_server& sts, const role_request& role, const s3_credentials& source) {
  std::map<std::string, std::string> extra;
  if (!role.external_id.empty()) extra["ExternalId"] = role.external_id;
  return ask_sts(sts, "AssumeRole", role, std::move(extra), source);
}

s3_credentials assume_role_with_web_identity(const sts_server& sts, const role_request& role, const std::string& token_file) {
  auto keys = ask_sts(sts, "AssumeRoleWithWebIdentity", role,
                      {{"WebIdentityToken", small_file(token_file, "the web identity token")}}, {});
  if (is_plaintext_remote(sts.url)) keys.plaintext_server = sts.url;
  return keys;
}

s3_credentials sso_credentials(sso_request r) {
  r.server = checked_server(std::move(r.server), "the sign-in server", "AWS_ENDPOINT_URL_SSO");
  const std::string remedy = "; run \"aws sso login --profile " + r.profile + "\"";
  const std::string file = environment_value("HOME") + "/.aws/sso/cache/" + sha1_of(r.session) + ".json";
  const auto content = read_small_file(file, max_response_bytes);
  if (!content) fail("there is no sign-in for the profile \"" + r.profile + "\" in \"" + file + "\"" + remedy);
  const text::json cache = text::parse_untrusted_json(*content);
  const std::string token = text::text_member(cache, "accessToken");
  std::string end = text::text_member(cache, "expiresAt");
  if (end.ends_with("UTC")) end.replace(end.size() - 3, 3, "Z");
  const auto expires = parse_expiration(end);
  if (token.empty() || !is_header_value(token) || !expires)
    fail("\"" + file + "\", the sign-in of the profile \"" + r.profile + "\", cannot be read" + remedy);
  if (*expires <= std::chrono::system_clock::now())
    fail("the sign-in of the profile \"" + r.profile + "\" has ended (" + end.substr(0, 40) + ")" + remedy);
  if (is_plaintext_remote(r.server)) fail("the token of a sign-in is not sent to \"" + r.server + "\" by plain http; use https");
  const std::string server_name = "the sign-in server at " + r.server;
  http_client client(r.ca_file);
  const auto got =
      ask_for_credentials(client,
                          {.url = r.server + "/federation/credentials?account_id=" + percent_encoded(r.account, false) +
                                  "&role_name=" + percent_encoded(r.role, false),
                           .headers = {"x-amz-sso_bearer_token: " + token}},
                          3, server_name);
  if (got.status != 200) {
    fail(server_name + " answers " + std::to_string(got.status) +
         (got.status == 401 ? remedy : "; check the account and the role of the profile \"" + r.profile + "\""));
  }
  const text::json document = text::parse_untrusted_json(got.body);
  const auto keys = document.is_object() ? document.find("roleCredentials") : document.end();
  if (!document.is_object() || keys == document.end() || !keys->is_object())
    fail(server_name + " did not return credentials as JSON; ask who runs it");
  const auto milliseconds = keys->find("expiration");
  std::string expiration;
  if (milliseconds != keys->end() && milliseconds->is_number_integer()) {
    const std::time_t seconds = static_cast<std::time_t>(milliseconds->get<std::int64_t>() / 1000);
    std::tm utc{};
    char text[32];
    if (::gmtime_r(&seconds, &utc) && std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc) > 0) expiration = text;
  }
  return checked({text::text_member(*keys, "accessKeyId"), text::text_member(*keys, "secretAccessKey"),
                  text::text_member(*keys, "sessionToken")},
                 true, expiration, server_name);
}

std::optional<s3_credentials> container_credentials(const std::string& ca_file) {
  const std::string relative = environment_value("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
                    full = environment_value("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (relative.empty() && full.empty()) return {};
  const std::string url = relative.empty() ? full : "http://169.254.170.2" + relative;
  const std::string_view host = host_of(url);
  const bool is_trusted = is_loopback(host) || host == "169.254.170.2" || host == "169.254.170.23" || host == "[fd00:ec2::23]";
  const bool clean = url.find_first_of("@\\ \t\r\n") == std::string::npos;
  if (!clean || host.empty() || !(url.starts_with("https://") || (url.starts_with("http://") && is_trusted))) {
    fail(
        "the URL of the container's credentials leads to another machine by plain http, or is not a URL; check "
        "AWS_CONTAINER_CREDENTIALS_FULL_URI");
  }
  const std::string server_name = "the container's credential server";
  http_client client(ca_file);
  http_client::request r{
      .url = url, .headers = {"Accept: application/json"}, .timeout = std::min(2.0, http_timeout()), .direct = true};
  std::string token = environment_value("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = environment_value("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty())
    token = small_file(file, "the token of the container's credential server");
  if (!is_header_value(token)) fail("AWS_CONTAINER_AUTHORIZATION_TOKEN has characters that a header cannot have; check it");
  if (!token.empty()) r.headers.push_back("Authorization: " + token);
  const auto got = ask_for_credentials(client, std::move(r), 3, server_name);
  if (got.status != 200)
    fail(server_name + " answers " + std::to_string(got.status) + "; check the role of the task, or of the service account");
  return credentials_in_json(got.body, "Token", true, server_name);
}

std::optional<s3_credentials> instance_credentials(const std::string& endpoint) {
  if (is_true_setting(environment_value("AWS_EC2_METADATA_DISABLED"))) return {};
  std::string server = environment_value("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (server.empty()) server = endpoint;
  if (server.empty()) {
    const std::string mode = text::case_fold(environment_value("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"));
    server = mode == "ipv6" ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
  }
  server = checked_server(std::move(server), "the metadata server of the instance", "AWS_EC2_METADATA_SERVICE_ENDPOINT");
  const double patience = number_of("AWS_METADATA_SERVICE_TIMEOUT", 1, 0.1, 60);
  const auto attempts = static_cast<unsigned>(number_of("AWS_METADATA_SERVICE_NUM_ATTEMPTS", 1, 1, 10));
  const std::string server_name = "the metadata server of the instance";
  const std::string roles = server + "/latest/meta-data/iam/security-credentials/";
  http_client client("");
  http_client::response got;
  std::string header;
  try {
    got = ask_for_credentials(client,
                              {.method = "PUT",
                               .url = server + "/latest/api/token",
                               .headers = {"x-aws-ec2-metadata-token-ttl-seconds: 21600"},
                               .timeout = patience,
                               .direct = true},
                              attempts, server_name);
    if (got.status != 200 || got.body.empty() || !is_header_value(got.body)) return {};
    header = "x-aws-ec2-metadata-token: " + got.body;
    got = ask_for_credentials(client, {.url = roles, .headers = {header}, .timeout = patience, .direct = true}, attempts,
                              server_name);
  } catch (const zarrbits::error&) {
    return {};  // not on EC2
  }
  const std::string role = got.body.substr(0, got.body.find_first_of("\r\n"));
  if (got.status != 200 || role.empty() || role.size() > 200) return {};
  got = ask_for_credentials(
      client, {.url = roles + percent_encoded(role, false), .headers = {header}, .timeout = patience, .direct = true}, attempts,
      server_name);
  if (got.status != 200) fail(server_name + " answers " + std::to_string(got.status) + "; check the role of the instance");
  return credentials_in_json(got.body, "Token", true, server_name);
}

}  // namespace zarrbits::remote
