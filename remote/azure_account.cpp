// SPDX-License-Identifier: BSL-1.0
#include "remote/azure_account.hpp"

#include "io/remote_url.hpp"
#include "remote/aws_config.hpp"
#include "remote/server_url.hpp"
#include "text/node_names.hpp"

#include <zarrbits/error.hpp>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <map>
#include <string_view>

namespace zarrbits::remote {

namespace {

constexpr std::string_view default_suffix = "core.windows.net";

// What the emulator Azurite has, as its documents say.
constexpr const char *emulator_account = "devstoreaccount1",
                     *emulator_key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
                     *emulator_url = "http://127.0.0.1:10000";

constexpr std::string_view lower_case = "abcdefghijklmnopqrstuvwxyz0123456789-",
                           container_characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_$";

bool has_only(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

std::string first_variable(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = environment_value(name); !value.empty()) return value;
  }
  return {};
}

[[noreturn]] void refuse(const std::string& sentence) { throw zarrbits::error(errc::invalid_option, sentence); }

struct azure_name {
  std::string account, suffix;  // "" if the name has none
};

// Only servers of Azure's: a name may be a stranger's, and a signature goes into each request.
bool is_azure_domain(std::string_view suffix) {
  constexpr std::string_view domains[] = {default_suffix, "core.chinacloudapi.cn", "core.usgovcloudapi.net", "core.cloudapi.de",
                                          "fabric.microsoft.com"};
  return std::find(std::begin(domains), std::end(domains), suffix) != std::end(domains);
}

azure_name parse_name(const std::string& target) {
  const std::string remedy =
      "; write it as \"az://container/prefix\" or \"abfs://container@account.dfs.core.windows.net/prefix\"";
  if (target.find(io::masked_query) != std::string::npos)
    refuse("\"" + target + "\" had a shared access signature, which would get into reports; set it as AZURE_STORAGE_SAS_TOKEN" +
           remedy);
  const std::size_t begin = target.find("://") + 3;
  const std::string first_part = target.substr(begin, target.find('/', begin) - begin);
  const std::size_t split = std::min(first_part.find('@'), first_part.size());
  const std::string display = io::display_url(target);
  if (display != target) {
    refuse("\"" + display + "\" contains a user name or a password, which it does not use" + remedy +
           ", and set the key as AZURE_STORAGE_KEY");
  }
  if (!has_only(first_part.substr(0, split), container_characters))
    refuse("\"" + display + "\" does not name a container" + remedy);
  if (split == first_part.size()) return {};
  const std::string host = text::case_fold(first_part.substr(split + 1));
  const std::size_t dot = std::min(host.find('.'), host.size());
  const std::string_view domain = std::string_view(host).substr(std::min(dot + 1, host.size()));
  azure_name name{host.substr(0, dot), std::string(domain.substr(std::min(domain.find('.') + 1, domain.size())))};
  if (!has_only(name.account, lower_case) || !(domain.starts_with("dfs.") || domain.starts_with("blob.")) ||
      !is_azure_domain(name.suffix))
    refuse("\"" + display + "\" is not on a server of Azure's" + remedy + ", and name another server by `endpoint`");
  return name;
}

// "AccountName=x;AccountKey=...", with names in lower case.
std::map<std::string, std::string> parse_connection_string(std::string_view text) {
  std::map<std::string, std::string> fields;
  while (!text.empty()) {
    const std::string_view field = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(field.size() + 1, text.size()));
    if (const std::size_t equals = field.find('='); equals != std::string_view::npos)
      fields[text::case_fold(field.substr(0, equals))] = field.substr(equals + 1);
  }
  return fields;
}

// "x" of "http://127.0.0.1:10000/x", or of "https://x.blob.core.windows.net".
std::string account_in_url(const std::string& url) {
  const std::size_t path = url.find('/', url.find("://") + 3);
  if (path != std::string::npos) return url.substr(url.rfind('/') + 1);
  const std::string host(host_of(url));
  const std::string account = host.substr(0, host.find('.'));
  return account.size() < host.size() && !has_only(account, "0123456789") && has_only(account, lower_case) ? account : "";
}

}  // namespace

azure_account find_azure_account(const std::string& target, const remote_access& remote) {
  const azure_name name = parse_name(target);
  azure_account a;
  std::string server, suffix(default_suffix);
  if (const std::string connection = environment_value("AZURE_STORAGE_CONNECTION_STRING"); !connection.empty()) {
    auto fields = parse_connection_string(connection);
    a = {.name = fields["accountname"], .key = fields["accountkey"], .sas = fields["sharedaccesssignature"]};
    server = fields["blobendpoint"];
    if (!fields["endpointsuffix"].empty()) suffix = fields["endpointsuffix"];
    if (is_true(fields["usedevelopmentstorage"])) {
      a = {.name = emulator_account, .key = emulator_key};
      server = std::string(emulator_url) + "/" + emulator_account;
    }
  } else {
    a = {.name = first_variable({"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"}),
         .key = first_variable({"AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"}),
         .sas = first_variable({"AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"})};
    server = first_variable({"AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"});
    if (is_true(environment_value("AZURE_STORAGE_USE_EMULATOR"))) {
      if (a.name.empty()) a.name = emulator_account;
      if (a.key.empty() && a.name == emulator_account) a.key = emulator_key;
      const std::string url = environment_value("AZURITE_BLOB_STORAGE_URL");
      if (server.empty()) server = (url.empty() ? emulator_url : url) + "/" + a.name;
    }
  }
  if (!remote.endpoint.empty()) server = remote.endpoint;
  if (!name.account.empty() && !a.name.empty() && a.name != name.account) {
    a = {.owner_of_keys = a.name};
    server = remote.endpoint;
  }
  if (!name.account.empty()) {
    a.name = name.account;
    suffix = name.suffix;
  }
  a.url = checked_server(std::move(server), "the Azure server", "`endpoint`, AZURE_STORAGE_ENDPOINT and BlobEndpoint",
                         io::cloud::azure);
  if (a.name.empty()) a.name = account_in_url(a.url);
  if (!a.name.empty() && !has_only(a.name, lower_case))
    refuse("the name of the storage account has other characters than small letters and digits; check AZURE_STORAGE_ACCOUNT");
  if (a.url.empty()) {
    if (a.name.empty())
      refuse("nothing says which storage account \"" + target +
             "\" is in; set AZURE_STORAGE_ACCOUNT, or write it as \"abfs://container@account.dfs.core.windows.net/prefix\"");
    a.url = checked_server("https://" + a.name + ".blob." + suffix, "the Azure server", "EndpointSuffix");
  }
  if (a.sas.starts_with('?') || a.sas.starts_with('&')) a.sas.erase(0, 1);
  return a;
}

}  // namespace zarrbits::remote
