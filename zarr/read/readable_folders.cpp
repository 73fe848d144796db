// SPDX-License-Identifier: BSL-1.0
#include "zarr/read/readable_folders.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace zarrbits::zarr {

namespace fs = std::filesystem;

readable_folders::readable_folders(const std::vector<std::string>& sources) {
  std::error_code e;
  for (const std::string& source : sources) {
    const fs::path real = fs::canonical(source, e);
    if (!e) add(fs::is_directory(real, e) ? real.string() : real.parent_path().string());
  }
}

void readable_folders::add(std::string folder) { folders_.push_back(std::move(folder)); }

// In a repository of git-annex, or datalad, each file is a link into its ".git/annex/objects". Whoever made the store may have
// made its ".git", too, so this has to be such a folder wherever links of it lead.
void readable_folders::add_store(const std::string& root) {
  std::error_code e;
  fs::path folder = fs::canonical(root, e);
  if (e) return;
  add(folder.string());
  while (!fs::exists(fs::symlink_status(folder / ".git", e)) && folder.has_relative_path()) folder = folder.parent_path();
  const std::string objects = fs::canonical(folder / ".git/annex/objects", e).string();
  if (!e && objects.ends_with("/annex/objects") && objects.find("/.git/") != std::string::npos) add(objects);
}

bool readable_folders::contains(const std::string& real) const {
  return std::any_of(folders_.begin(), folders_.end(), [&](const std::string& folder) {
    return folder == "/" ? real.starts_with('/') : real.starts_with(folder + "/");
  });
}

}  // namespace zarrbits::zarr
