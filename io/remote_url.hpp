// SPDX-License-Identifier: BSL-1.0
//
// Names of remote files. What a URL has after "?", and a user before its host, may be secrets: they are remembered here, and the
// name is without them, in all that follows.
//
//   const std::string name = redact_url("https://host/in.nc?X-Amz-Signature=...");  // "https://host/in.nc"
//   const std::string url = full_url(name);                                        // the URL, for the request
//
#ifndef ZARRBITS_IO_REMOTE_URL_HPP
#define ZARRBITS_IO_REMOTE_URL_HPP

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::io {

constexpr std::string_view masked_query = "?***";  // ends a name that is refused, because it had a signature

enum class cloud { s3, google, azure };  // whose words a server of objects speaks

// "s3://...", "gs://...", "az://...", "abfs://..." or "abfss://..."
bool is_object_store(const std::string& name);
// The cloud of such a name.
cloud cloud_of(const std::string& name);
// "az://container/key", "abfs://container@account.dfs.core.windows.net/key"
bool is_azure(const std::string& name);
// True if both names of stores may be the same place, or `inner` may be within `outer`: Azure's have several spellings.
bool may_be_within(const std::string& inner, const std::string& outer);
// "https://..." or "http://..."
bool is_web(const std::string& name);
inline bool is_remote(const std::string& name) { return is_object_store(name) || is_web(name); }

bool any_in_object_store(const std::vector<std::string>& names);
bool any_remote(const std::vector<std::string>& names);

// The position of the colon before the object, in "https://host/in.nc:/a/b"; npos if absent.
std::size_t object_in_url(const std::string& name);
// The name without secrets: https://host/x for https://user@host/x, and s3://***@x for s3://user@x, which is refused, as is
// az://x?*** for a name with a shared access signature. Files
// that differ only in the query keep different names, with a part of its hash, unless it is a signature, which is a different
// one every time. An object in the file ("https://host/in.nc?...:/a/b") stays. Thread-safe.
std::string redact_url(const std::string& name);
// True for a name that ends in a part of a hash: no server has a file of that name.
bool has_hashed_query(const std::string& name);
// Like redact_url(), for a URL that is never requested by its name: it is not remembered.
std::string display_url(const std::string& url);
// The URL with its secrets, as it was given.
std::string original_url(const std::string& name);
// Like original_url(), percent-encoded where necessary.
std::string full_url(const std::string& name);

}  // namespace zarrbits::io

#endif
