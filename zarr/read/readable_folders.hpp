// SPDX-License-Identifier: BSL-1.0
//
// Folders outside of a store that may be read for it: its symbolic links, or its references, may lead to any file.
//
#ifndef ZARRBITS_ZARR_READ_READABLE_FOLDERS_HPP
#define ZARRBITS_ZARR_READ_READABLE_FOLDERS_HPP

#include <string>
#include <vector>

namespace zarrbits::zarr {

class readable_folders {
 public:
  // The folders among `sources`, and those of the files. What does not exist allows nothing.
  explicit readable_folders(const std::vector<std::string>& sources);
  // The real path of a folder.
  void add(std::string folder);
  // Adds the folder of a directory store, and what git-annex keeps for the repository that the store is in.
  void add_store(const std::string& root);
  // Whether a file is in one of them, or below. `real`: its path without symbolic links.
  bool contains(const std::string& real) const;

 private:
  std::vector<std::string> folders_;
};

}  // namespace zarrbits::zarr

#endif
