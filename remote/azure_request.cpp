// SPDX-License-Identifier: BSL-1.0
#include "remote/azure_request.hpp"

#include "text/base64.hpp"

#include <zarrbits/error.hpp>

#include <ctime>

namespace zarrbits::remote {

namespace {

// The oldest that lists which blobs are folders of a hierarchical namespace. Later ones escape some names in lists.
constexpr const char* service_version = "2020-10-02";

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  char text[40];
  ::gmtime_r(&now, &utc);
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return text;
}

}  // namespace

std::string base64_md5_of(std::span<const std::byte> bytes) {
  const std::string hex = md5_of(bytes);
  std::string digest;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) digest += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return text::base64(digest);
}

std::string azure_string_to_sign(const azure_request& r, std::string_view account) {
  const auto header = [&](const char* name) {
    const auto it = r.headers.find(name);
    return it == r.headers.end() ? "" : it->second;
  };
  std::string text = r.method;
  text += "\n" + header("content-encoding") + "\n" + header("content-language") + "\n";
  text += r.body.empty() ? "" : std::to_string(r.body.size());
  for (const char* name :
       {"content-md5", "content-type", "date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since"})
    text += "\n" + header(name);
  text += "\n" + (r.range.size > 0 ? "bytes=" + io::range_text(r.range) : "") + "\n";
  for (const auto& [name, value] : r.headers) {
    if (name.starts_with("x-ms-")) text += name + ":" + value + "\n";
  }
  text += "/" + std::string(account) + r.path;
  for (const auto& [name, value] : r.query) text += "\n" + name + ":" + value;
  return text;
}

std::vector<std::string> azure_headers(azure_request r, const s3_credentials& keys) {
  const std::string_view method = r.method;
  r.headers["x-ms-date"] = http_date();
  r.headers["x-ms-version"] = service_version;
  if (method == "PUT") {
    r.headers["content-type"] = "application/octet-stream";
    const bool is_copy = r.headers.contains("x-ms-copy-source");
    if (const std::string md5 = base64_md5_of(r.body); !is_copy && !md5.empty()) r.headers["content-md5"] = md5;
    if (!is_copy && !r.query.contains("comp")) r.headers["x-ms-blob-type"] = "BlockBlob";
  }
  if (!keys.bearer.empty()) r.headers["authorization"] = "Bearer " + keys.bearer;
  if (!keys.secret_key.empty()) {
    const auto key = text::decode_base64(keys.secret_key);
    if (!key || key->empty())
      throw zarrbits::error(errc::permission_denied,
                            "the key of the storage account is not Base64; copy it again, and set it as AZURE_STORAGE_KEY");
    r.headers["authorization"] = "SharedKey " + keys.access_key + ":" +
                                 text::base64(hmac_sha256({reinterpret_cast<const char*>(key->data()), key->size()},
                                                          azure_string_to_sign(r, keys.access_key)));
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : r.headers) lines.push_back(name + ": " + value);
  return lines;
}

}  // namespace zarrbits::remote
