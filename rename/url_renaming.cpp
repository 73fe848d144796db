// SPDX-License-Identifier: BSL-1.0
#include "rename/url_renaming.hpp"

#include "io/reference_table.hpp"
#include "io/remote_url.hpp"
#include "text/format.hpp"
#include "text/name_escaping.hpp"
#include "text/percent.hpp"

#include <zarrbits/error.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace zarrbits::rename {

namespace fs = std::filesystem;

namespace {

// An absolute path, as zarrbits writes it; other programs write it without a scheme.
std::string with_scheme(const std::string& name) { return name.starts_with('/') ? std::string(io::file_url) + name : name; }

// Without slashes at the end: "file://" for the root of the file system.
std::string folder_name(const std::string& name) {
  std::string result = with_scheme(name);
  const std::size_t scheme = result.find("://");
  const std::size_t begin = scheme == std::string::npos ? 1 : scheme + 3;
  while (result.size() > begin && result.ends_with('/')) result.pop_back();
  return result;
}

bool has_secret(const std::string& name) {
  if (io::original_url(name) != name) return true;  // the command has taken it out
  if (!io::is_remote(name)) return false;
  const std::string_view rest = std::string_view(name).substr(name.find("://") + 3);
  const bool has_user = !io::is_azure(name) && rest.substr(0, rest.find('/')).find('@') != rest.npos;
  return has_user || rest.find_first_of("?#") != rest.npos;
}

bool is_reference_name(const std::string& name) {
  const std::size_t scheme = name.find("://");
  if (name.starts_with(io::file_url)) return name.size() > io::file_url.size() && name[io::file_url.size()] == '/';
  if (scheme != std::string::npos) return io::is_remote(name) && name.size() > scheme + 3 && name[scheme + 3] != '/';
  return name.substr(0, name.find('/')).find(':') == std::string::npos;  // "s3:" is not a path
}

}  // namespace

url_renaming::url_renaming(const rename_options& options, std::string references)
    : references_(std::move(references)),
      old_(folder_name(io::original_url(options.old_name))),
      new_(folder_name(options.new_name)),
      available_memory_(options.memory) {
  if (old_.empty() || new_.empty())
    throw zarrbits::error(errc::invalid_option, "a name of the sources is empty; set the old name and the new one");
  if (has_secret(options.new_name))
    throw zarrbits::error(errc::invalid_option,
                          "the new name has a user or a query, which may be a secret, and would be in the references for all to "
                          "read; remove them from the name");
  if (!is_reference_name(new_) || !text::is_utf8(new_))
    throw zarrbits::error(errc::invalid_option, "references cannot be read by the name \"" + text::escape_name(new_) +
                                                    "\"; use one that begins with file:///, s3://BUCKET, gs://BUCKET, "
                                                    "az://CONTAINER, https://HOST or http://HOST, or a path");
}

std::string url_renaming::new_name_of(const std::string& name) const {
  const std::string below = name.substr(old_.size());
  if (io::is_web(name) == io::is_web(new_)) return new_ + below;
  if (io::is_web(new_)) return new_ + text::escape_url_path(below);
  const auto decoded = text::percent_decode(below);
  if (!decoded)
    throw io::reference_error("\"" + text::escape_name(name) +
                              "\" has an escape that is not in the name of a file; use a new name that begins with https://");
  return new_ + *decoded;
}

std::optional<std::string> url_renaming::renamed(const std::string& url) {
  const std::string name = with_scheme(url);
  if (!name.starts_with(old_) || (name.size() > old_.size() && name[old_.size()] != '/')) return {};
  if (!text::is_utf8(name)) throw io::reference_error("the name of a source is not UTF-8; make the references again");
  if (!renamed_.contains(url)) {
    const std::uint64_t bytes = url.size() + 128;  // with a node of the set
    if (bytes > available_memory_)
      throw io::reference_error(
          "the names of the sources do not fit in the memory that may be used; increase `memory`, or do not trust the "
          "references");
    available_memory_ -= bytes;
    renamed_.insert(url);
  }
  return new_name_of(name);
}

void url_renaming::rename_source(text::json& source) {
  const auto url = source.is_object() ? source.find("url") : source.end();
  if (!source.is_object() || url == source.end() || !url->is_string() || !source.contains("size") ||
      !source["size"].is_number_unsigned())
    throw io::reference_error("the references have a source without a URL and a size; make them again");
  const auto name = renamed(url->get<std::string>());
  if (!name) return;
  *url = *name;
  source.erase("modified");
  source.erase("etag");
  listed_.insert(*name);
}

std::optional<std::uint64_t> url_renaming::data_file_size(const std::string& url) const {
  const std::string name = with_scheme(url);
  if (!name.starts_with(io::file_url)) return {};
  const std::string path = name.substr(io::file_url.size());
  const std::size_t suffix = path.rfind(".data");
  if (suffix == std::string::npos || !io::is_data_file(references_, references_ + path.substr(suffix))) return {};
  std::error_code e;
  if (!fs::equivalent(references_ + path.substr(suffix), path, e) || e) return {};
  const std::uint64_t size = fs::file_size(path, e);
  return e ? std::nullopt : std::optional(size);
}

std::vector<text::json> url_renaming::unlisted_sources() const {
  std::set<std::pair<std::string, std::uint64_t>> files;
  for (const std::string& url : renamed_) {
    const auto size = data_file_size(url);
    const std::string name = size ? new_name_of(with_scheme(url)) : "";
    if (size && !listed_.contains(name)) files.emplace(name, *size);
  }
  std::vector<text::json> sources;
  for (const auto& [name, size] : files) sources.push_back({{"url", name}, {"size", size}});
  return sources;
}

}  // namespace zarrbits::rename
