// SPDX-License-Identifier: BSL-1.0
//
// Which storage account of Azure a name is in, and what the environment says of it, under the names that Azure's command line,
// adlfs and obstore have for that.
//
#ifndef ZARRBITS_REMOTE_AZURE_ACCOUNT_HPP
#define ZARRBITS_REMOTE_AZURE_ACCOUNT_HPP

#include <zarrbits/remote_access.hpp>

#include <string>

namespace zarrbits::remote {

// All variables that are read for Azure.
inline constexpr const char* azure_variables[] = {"AZURE_STORAGE_CONNECTION_STRING",
                                                  "AZURE_STORAGE_ACCOUNT",
                                                  "AZURE_STORAGE_ACCOUNT_NAME",
                                                  "AZURE_STORAGE_KEY",
                                                  "AZURE_STORAGE_ACCOUNT_KEY",
                                                  "AZURE_STORAGE_ACCESS_KEY",
                                                  "AZURE_STORAGE_SAS_TOKEN",
                                                  "AZURE_STORAGE_SAS_KEY",
                                                  "AZURE_STORAGE_TOKEN",
                                                  "AZURE_STORAGE_ACCESS_TOKEN",
                                                  "AZURE_STORAGE_ANON",
                                                  "AZURE_SKIP_SIGNATURE",
                                                  "AZURE_NO_SIGN_REQUEST",
                                                  "AZURE_STORAGE_ENDPOINT",
                                                  "AZURE_ENDPOINT",
                                                  "AZURE_STORAGE_USE_EMULATOR",
                                                  "AZURITE_BLOB_STORAGE_URL",
                                                  "AZURE_TENANT_ID",
                                                  "AZURE_STORAGE_TENANT_ID",
                                                  "AZURE_CLIENT_ID",
                                                  "AZURE_STORAGE_CLIENT_ID",
                                                  "AZURE_CLIENT_SECRET",
                                                  "AZURE_STORAGE_CLIENT_SECRET",
                                                  "AZURE_FEDERATED_TOKEN_FILE",
                                                  "AZURE_AUTHORITY_HOST",
                                                  "AZURE_POD_IDENTITY_AUTHORITY_HOST"};

struct azure_account {
  std::string name = {};           // "" if nothing says it
  std::string url = {};            // of its blobs, without "/" at the end
  std::string key = {}, sas = {};  // "" if the environment has none
  std::string owner_of_keys = {};  // the account that the environment names, if it is not this one: `key` and `sas` are ""
};

// For "az://container/prefix" or "abfs://container@account.dfs.core.windows.net/prefix". Throws zarrbits::error if it is not one
// of these, or nothing says which account it is.
azure_account find_azure_account(const std::string& target, const remote_access& remote);

}  // namespace zarrbits::remote

#endif
