// SPDX-License-Identifier: BSL-1.0
#include "remote/google_credentials.hpp"

#include "remote/aws_config.hpp"
#include "remote/http_client.hpp"
#include "remote/oauth_token.hpp"
#include "remote/s3_credential_endpoints.hpp"
#include "remote/server_url.hpp"
#include "text/base64.hpp"
#include "text/json_text.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>
#include <sys/stat.h>

namespace zarrbits::remote {

namespace {

using text::text_member;

constexpr const char* token_scope = "https://www.googleapis.com/auth/devstorage.read_write";
constexpr const char* default_token_server = "https://oauth2.googleapis.com/token";

[[noreturn]] void fail(const std::string& sentence, const std::string& place = {}) {
  throw zarrbits::error(errc::permission_denied, sentence, {place});
}

// Base64 of the alphabet for URLs, without padding.
std::string base64_url(std::string_view bytes) {
  std::string out = text::base64(bytes);
  std::replace(out.begin(), out.end(), '+', '-');
  std::replace(out.begin(), out.end(), '/', '_');
  while (!out.empty() && out.back() == '=') out.pop_back();
  return out;
}

s3_credentials google_token_in(const http_client::response& got, const std::string& server_name) {
  return token_in(got, server_name, "the login has ended: run \"gcloud auth application-default login\", or check the clock",
                  "check the service account, or its key");
}

s3_credentials token_of_file(const std::string& path, const text::json& document, const std::string& ca_file) {
  const std::string kind = text_member(document, "type"), file = "\"" + path + "\", the file of Google's credentials,";
  std::string url = text_member(document, "token_uri");
  if (url.empty()) url = default_token_server;
  url = checked_server(std::move(url), "the server of Google's access tokens", file + " (token_uri)");
  if (is_plaintext_remote(url)) fail(file + " has a token_uri with plain http; it has to be https", path);
  std::string form;
  if (kind == "service_account") {
    const std::string email = text_member(document, "client_email"), key = text_member(document, "private_key");
    const auto now =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    text::json header = {{"alg", "RS256"}, {"typ", "JWT"}};
    if (const std::string id = text_member(document, "private_key_id"); !id.empty()) header["kid"] = id;
    const std::string claims =
        base64_url(text::json_text(header)) + "." +
        base64_url(text::json_text({{"iss", email}, {"scope", token_scope}, {"aud", url}, {"iat", now}, {"exp", now + 3600}}));
    const std::string signature = rs256_of(claims, key);
    if (email.empty() || signature.empty())
      fail(file + " has no client_email, or no private_key that can be used; make a new key of the service account", path);
    form = "grant_type=" + percent_encoded("urn:ietf:params:oauth:grant-type:jwt-bearer", false) + "&assertion=" + claims + "." +
           base64_url(signature);
  } else if (kind == "authorized_user") {
    for (const char* name : {"client_id", "client_secret", "refresh_token"}) {
      const std::string value = text_member(document, name);
      if (value.empty()) fail(file + " has no " + name + "; run \"gcloud auth application-default login\"", path);
      form += std::string(name) + "=" + percent_encoded(value, false) + "&";
    }
    form += "grant_type=refresh_token";
  } else {
    fail(file + " is of the type \"" + kind.substr(0, 60) +
             "\", not service_account or authorized_user; set GOOGLE_OAUTH_ACCESS_TOKEN to what \"gcloud auth "
             "print-access-token\" prints",
         path);
  }
  const std::string server_name = "the server of Google's access tokens at " + url;
  http_client client(ca_file);
  s3_credentials keys = google_token_in(ask_for_credentials(client,
                                                            {.method = "POST",
                                                             .url = url,
                                                             .headers = {"Content-Type: application/x-www-form-urlencoded"},
                                                             .body = std::as_bytes(std::span(form.data(), form.size()))},
                                                            3, server_name),
                                        server_name);
  keys.quota_project = text_member(document, "quota_project_id");
  keys.project = text_member(document, "project_id");
  return keys;
}

s3_credentials credentials_in_file(const std::string& path, const std::string& ca_file) {
  constexpr std::size_t max_file_bytes = 256 << 10;
  const auto text = read_small_file(path, max_file_bytes);
  if (!text) fail("cannot read \"" + path + "\", the file of Google's credentials; check GOOGLE_APPLICATION_CREDENTIALS", path);
  const text::json document = text::parse_untrusted_json(*text);
  if (!document.is_object())
    fail("\"" + path + "\", the file of Google's credentials, is not a JSON object of up to 256 KiB; make it again", path);
  return token_of_file(path, document, ca_file);
}

std::string default_file() {
  const std::string folder = environment_value("CLOUDSDK_CONFIG");
  return (folder.empty() ? environment_value("HOME") + "/.config/gcloud" : folder) + "/application_default_credentials.json";
}

// Empty if this is not a machine of Google's.
std::optional<s3_credentials> credentials_of_machine() {
  if (environment_value("NO_GCE_CHECK") == "true") return {};
  std::string host;
  for (const char* name : {"GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"}) {
    if (host.empty()) host = environment_value(name);
  }
  if (host.empty()) host = "169.254.169.254";
  const std::string server = checked_server("http://" + host, "the metadata server of the machine", "GCE_METADATA_HOST");
  const std::string server_name = "the metadata server of the machine";
  const double wish = std::strtod(environment_value("GCE_METADATA_TIMEOUT").c_str(), nullptr);
  http_client client("");
  http_client::response got;
  try {
    got = ask_for_credentials(client,
                              {.url = server + "/computeMetadata/v1/instance/service-accounts/default/token?scopes=" +
                                      percent_encoded(token_scope, false),
                               .headers = {"Metadata-Flavor: Google"},
                               .timeout = wish > 0 ? std::clamp(wish, 0.1, 60.0) : std::min(3.0, http_timeout()),
                               .direct = true},
                              1, server_name);
  } catch (const zarrbits::error&) {
    return {};
  }
  if (got.header("metadata-flavor") != "Google" || got.status == 404) return {};  // another cloud, or no service account
  return google_token_in(got, server_name);
}

s3_credentials find(const std::string& target, const remote_access& remote, const std::string& ca_file) {
  if (remote.no_sign_request || is_true(environment_value("GS_NO_SIGN_REQUEST")) ||
      is_true(environment_value("GOOGLE_SKIP_SIGNATURE")))
    return {};
  s3_credentials keys{environment_value("GS_ACCESS_KEY_ID"), environment_value("GS_SECRET_ACCESS_KEY")};
  if (!keys.access_key.empty() && !keys.secret_key.empty()) return keys;
  keys = {};
  keys.bearer = environment_value("GOOGLE_OAUTH_ACCESS_TOKEN");
  if (!keys.bearer.empty()) return keys;
  if (!environment_value("STORAGE_EMULATOR_HOST").empty()) return {};
  if (const std::string file = environment_value("GOOGLE_APPLICATION_CREDENTIALS"); !file.empty())
    return credentials_in_file(file, ca_file);
  struct stat info {};
  if (const std::string file = default_file(); ::stat(file.c_str(), &info) == 0) return credentials_in_file(file, ca_file);
  if (auto of_machine = credentials_of_machine()) return *of_machine;
  fail("there are no credentials for \"" + target +
           "\"; run \"gcloud auth application-default login\", set GOOGLE_APPLICATION_CREDENTIALS or GS_ACCESS_KEY_ID and "
           "GS_SECRET_ACCESS_KEY, or, if the bucket is public, use `no_sign_request`",
       target);
}

}  // namespace

s3_credentials find_google_credentials(const std::string& target, const remote_access& remote, const std::string& ca_file) {
  s3_credentials keys = find(target, remote, ca_file);
  // as Google's libraries have it, the variable replaces what the file says
  if (const std::string project = environment_value("GOOGLE_CLOUD_QUOTA_PROJECT"); !project.empty() && !keys.bearer.empty())
    keys.quota_project = project;
  if (const std::string project = environment_value("GS_USER_PROJECT"); !project.empty()) keys.quota_project = project;
  for (const char* name : {"GCLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_QUOTA_PROJECT"}) {
    if (const std::string project = environment_value(name); !project.empty()) keys.project = project;
  }
  for (const std::string* value : {&keys.access_key, &keys.bearer, &keys.quota_project, &keys.project}) {
    if (!is_header_value(*value))
      fail("the access key, the token or the project for \"" + target +
               "\" has characters that a header cannot have, such as the end of a line; set it again",
           target);
  }
  return keys;
}

}  // namespace zarrbits::remote
