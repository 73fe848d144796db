// SPDX-License-Identifier: BSL-1.0
//
// A source, with its objects and how its datasets lie in it.
//
#ifndef ZARRBITS_REPACK_OPENED_FILE_HPP
#define ZARRBITS_REPACK_OPENED_FILE_HPP

#include "repack/file_tree.hpp"
#include "repack/layout_rules.hpp"

#include <string>

namespace zarrbits::repacking {

struct opened_file {
  // Throws zarrbits::error, hdf5::failure.
  opened_file(const std::string& name, const hdf5::source_options& options)
      : file(name, options), tree(read_tree(file.file())), contents(read_contents(file, tree)) {
    file.require_unchanged();
  }
  opened_contents view() const { return {file, tree, contents}; }

  hdf5::source_file file;
  file_tree tree;
  file_contents contents;
};

}  // namespace zarrbits::repacking

#endif
