// SPDX-License-Identifier: BSL-1.0
#include "remote/azure_credentials.hpp"

#include "remote/aws_config.hpp"
#include "remote/azure_account.hpp"
#include "remote/http_client.hpp"
#include "remote/oauth_token.hpp"
#include "remote/s3_credential_endpoints.hpp"
#include "remote/server_url.hpp"
#include "text/json_text.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace zarrbits::remote {

namespace {

constexpr const char *storage_scope = "https://storage.azure.com/.default", *storage_resource = "https://storage.azure.com/";

[[noreturn]] void throw_no_access(const std::string& sentence, const std::string& place = {}) {
  throw zarrbits::error(errc::permission_denied, sentence, {place});
}

bool is_anonymous(const remote_access& remote) {
  return remote.no_sign_request || is_true(environment_value("AZURE_STORAGE_ANON")) ||
         is_true(environment_value("AZURE_SKIP_SIGNATURE")) || is_true(environment_value("AZURE_NO_SIGN_REQUEST"));
}

std::string variable(const char* name, const char* of_adlfs) {
  const std::string value = environment_value(name);
  return value.empty() ? environment_value(of_adlfs) : value;
}

// With a secret, or with what the cluster of a workload says of it. Empty if the environment has neither.
std::optional<s3_credentials> token_of_application(const std::string& ca_file) {
  const std::string tenant = variable("AZURE_TENANT_ID", "AZURE_STORAGE_TENANT_ID"),
                    client_id = variable("AZURE_CLIENT_ID", "AZURE_STORAGE_CLIENT_ID"),
                    secret = variable("AZURE_CLIENT_SECRET", "AZURE_STORAGE_CLIENT_SECRET"),
                    file = environment_value("AZURE_FEDERATED_TOKEN_FILE");
  if (tenant.empty() || client_id.empty() || (secret.empty() && file.empty())) return {};
  if (tenant.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") != std::string::npos)
    throw_no_access("AZURE_TENANT_ID is not the name of a tenant; set it again");
  std::string form = "grant_type=client_credentials&scope=" + percent_encoded(storage_scope, false) +
                     "&client_id=" + percent_encoded(client_id, false);
  if (!secret.empty()) {
    form += "&client_secret=" + percent_encoded(secret, false);
  } else {
    constexpr std::size_t max_file_bytes = 64 << 10;
    std::string assertion = read_small_file(file, max_file_bytes).value_or("");
    while (!assertion.empty() && (assertion.back() == '\n' || assertion.back() == '\r')) assertion.pop_back();
    if (assertion.empty())
      throw_no_access("cannot read \"" + file + "\", the file of the identity; check AZURE_FEDERATED_TOKEN_FILE", file);
    form += "&client_assertion_type=" + percent_encoded("urn:ietf:params:oauth:client-assertion-type:jwt-bearer", false) +
            "&client_assertion=" + percent_encoded(assertion, false);
  }
  std::string authority = environment_value("AZURE_AUTHORITY_HOST");
  if (authority.empty()) authority = "https://login.microsoftonline.com";
  if (authority.find("://") == std::string::npos) authority.insert(0, "https://");
  const std::string server = checked_server(std::move(authority), "the server of Azure's access tokens", "AZURE_AUTHORITY_HOST");
  if (is_plaintext_remote(server)) throw_no_access("AZURE_AUTHORITY_HOST has plain http; it has to be https", server);
  const std::string server_name = "the server of Azure's access tokens at " + server;
  http_client client(ca_file);
  return token_in(ask_for_credentials(client,
                                      {.method = "POST",
                                       .url = server + "/" + tenant + "/oauth2/v2.0/token",
                                       .headers = {"Content-Type: application/x-www-form-urlencoded"},
                                       .body = std::as_bytes(std::span(form.data(), form.size()))},
                                      3, server_name),
                  server_name, "what it was asked with has ended: check AZURE_FEDERATED_TOKEN_FILE",
                  "check AZURE_TENANT_ID, AZURE_CLIENT_ID and the secret");
}

// The identity of a machine at Azure, or the one that AZURE_CLIENT_ID names. Empty elsewhere.
std::optional<s3_credentials> token_of_machine() {
  std::string host = environment_value("AZURE_POD_IDENTITY_AUTHORITY_HOST");
  if (host.empty()) host = "http://169.254.169.254";
  const std::string server_name = "the metadata server of the machine";
  const std::string server = checked_server(std::move(host), server_name, "AZURE_POD_IDENTITY_AUTHORITY_HOST");
  const std::string client_id = variable("AZURE_CLIENT_ID", "AZURE_STORAGE_CLIENT_ID");
  http_client client("");
  http_client::response got;
  try {
    got = ask_for_credentials(client,
                              {.url = server + "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=" +
                                      percent_encoded(storage_resource, false) +
                                      (client_id.empty() ? "" : "&client_id=" + percent_encoded(client_id, false)),
                               .headers = {"Metadata: true"},
                               .timeout = std::min(1.0, http_timeout()),
                               .direct = true},
                              1, server_name);
  } catch (const zarrbits::error&) {
    return {};
  }
  // another cloud has other errors; 400: no identity
  if (got.status != 200 && (got.status == 400 || text::text_member(text::parse_untrusted_json(got.body), "error").empty()))
    return {};
  return token_in(got, server_name, "run the command again", "check the identity of the machine, and AZURE_CLIENT_ID");
}

s3_credentials find_in_environment(const std::string& target, const remote_access& remote, const std::string& ca_file) {
  if (is_anonymous(remote)) return {};
  const azure_account account = find_azure_account(target, remote);
  if (!account.key.empty()) {
    if (account.name.empty())
      throw_no_access("there is a key, but nothing says of which storage account; set AZURE_STORAGE_ACCOUNT", target);
    return {.access_key = account.name, .secret_key = account.key};
  }
  if (!account.sas.empty()) return {.access_key = {}, .secret_key = {}, .sas = account.sas};
  for (const char* name : {"AZURE_STORAGE_TOKEN", "AZURE_STORAGE_ACCESS_TOKEN"}) {
    if (const std::string token = environment_value(name); !token.empty())
      return {.access_key = {}, .secret_key = {}, .bearer = token};
  }
  if (auto token = token_of_application(ca_file)) return *token;
  if (!account.owner_of_keys.empty())
    throw_no_access("the environment has credentials of the storage account \"" + account.owner_of_keys + "\", but \"" + target +
                        "\" is in \"" + account.name + "\", which does not get them; set AZURE_STORAGE_ACCOUNT and its key",
                    target);
  if (auto token = token_of_machine()) return *token;
  throw_no_access("there are no credentials for \"" + target +
                      "\"; set AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_CONNECTION_STRING or the variables of "
                      "an application, or, if the container is "
                      "public, use `no_sign_request`",
                  target);
}

}  // namespace

s3_credentials find_azure_credentials(const std::string& target, const remote_access& remote, const std::string& ca_file) {
  s3_credentials keys = find_in_environment(target, remote, ca_file);
  for (const std::string* value : {&keys.access_key, &keys.bearer, &keys.sas}) {
    if (!is_header_value(*value))
      throw_no_access("the account, the token or the signature for \"" + target +
                          "\" has characters that a header cannot have, such as the end of a line; set it again",
                      target);
  }
  if (keys.sas.find_first_of(" #\"<>") != std::string::npos)
    throw_no_access("the shared access signature for \"" + target +
                        "\" has characters that a URL cannot have; copy it again, as AZURE_STORAGE_SAS_TOKEN",
                    target);
  return keys;
}

}  // namespace zarrbits::remote
