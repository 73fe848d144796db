// SPDX-License-Identifier: BSL-1.0
#include "io/source_url_map.hpp"

#include "io/reference_table.hpp"
#include "io/remote_url.hpp"
#include "text/node_names.hpp"
#include "text/percent.hpp"

#include <zarrbits/error.hpp>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace zarrbits::io {

namespace fs = std::filesystem;

namespace {

std::string real_name(const std::string& path) {
  std::error_code e;
  fs::path real = fs::weakly_canonical(fs::absolute(path, e), e);
  return text::strip_trailing_slashes((e ? fs::absolute(path) : real).lexically_normal().string());
}

bool is_below(const std::string& folder, const std::string& path) {
  return folder == "/" || (path.size() > folder.size() + 1 && path.starts_with(folder) && path[folder.size()] == '/');
}

std::string relative_path(const std::string& folder, const std::string& path) {
  return path.substr(folder == "/" ? 1 : folder.size() + 1);
}

[[noreturn]] void throw_invalid_base(const std::string& reason) { throw zarrbits::error(errc::invalid_option, reason); }

void check_url(const std::string& url) {
  const std::string_view remaining = std::string_view(url).substr(url.find("://") == url.npos ? 0 : url.find("://") + 3);
  if (url != "." && (!is_remote(url) || remaining.empty() || remaining.front() == '/'))
    throw_invalid_base(
        "the URL of `base` is not like \"https://host/path\", \"s3://bucket/path\", \"gs://bucket/path\" or "
        "\"az://container/path\", nor \".\"; use one of these");
  if (is_web(url) &&
      (remaining.find_first_of("?#") != remaining.npos || remaining.substr(0, remaining.find('/')).find('@') != remaining.npos))
    throw_invalid_base(
        "the URL of `base` has a user or a query, which may be a secret, and would be in the references for all to read; leave "
        "them out");
}

}  // namespace

source_url_map::source_url_map(const std::optional<source_base>& base, const std::vector<std::string>& sources,
                               const std::string& references)
    : base_(base), references_(real_name(references)) {
  if (!base_) return;
  check_url(base_->url);
  while (base_->url.ends_with('/')) base_->url.pop_back();
  if (relative()) return;
  for (const std::string& source : sources) {
    const std::string file = split_source(source).file;
    if (!base_->folder.empty() || is_remote(file)) continue;
    base_->folder = fs::path(real_name(file)).parent_path().string();
  }
  if (base_->folder.empty()) throw_invalid_base("`base` is for local sources, of which there are none; leave it out");
  base_->folder = real_name(base_->folder);
}

std::string source_url_map::published_url(const std::string& url) const {
  if (!base_ || !url.starts_with(file_url)) return url;
  const std::string path = url.substr(file_url.size());
  if (relative()) return fs::path(path).lexically_relative(fs::path(references_).parent_path()).string();
  std::string name;
  if (is_below(base_->folder, path)) name = relative_path(base_->folder, path);
  else if (is_data_file(references_, path)) name = fs::path(path).filename().string();
  else
    throw zarrbits::error(errc::invalid_option,
                          "\"" + path + "\" is not in \"" + base_->folder +
                              "\", so that `base` gives it no URL; name a folder that has all sources: `base` FOLDER=URL",
                          {path});
  return base_->url + "/" + (is_web(base_->url) ? text::escape_url_path(name) : name);
}

std::string source_url_map::local_url(const std::string& url) const {
  if (!base_ || relative() || !is_below(base_->url, url)) return url;
  std::string name = relative_path(base_->url, url);
  if (is_web(url)) {
    const auto plain = text::percent_decode(name);
    if (!plain) return url;
    name = *plain;
  }
  for (const fs::path& part : fs::path(name)) {
    if (part == ".." || part == "." || part.empty()) return url;
  }
  const fs::path data_file = fs::path(references_).parent_path() / fs::path(name).filename();
  if (is_data_file(references_, data_file.string())) return std::string(file_url) + data_file.string();
  return std::string(file_url) + (base_->folder == "/" ? "" : base_->folder) + "/" + name;
}

std::string from_references(const std::string& url, const std::string& references) {
  if (url.empty() || url.front() == '/' || url.find("://") != url.npos) return url;
  return std::string(file_url) + (fs::path(real_name(references)).parent_path() / url).lexically_normal().string();
}

}  // namespace zarrbits::io
