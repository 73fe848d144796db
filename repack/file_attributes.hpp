// SPDX-License-Identifier: BSL-1.0
//
// What the file system knows of a file that is replaced.
//
#ifndef ZARRBITS_REPACK_FILE_ATTRIBUTES_HPP
#define ZARRBITS_REPACK_FILE_ATTRIBUTES_HPP

#include <string>

namespace zarrbits::repacking {

// The file that is to be replaced, behind symbolic links. Throws zarrbits::error if it does not exist, is not a file, or has
// further names, which would keep the old one.
std::string file_to_replace(const std::string& path);

// Gives `to` the mode, the times, the extended attributes and, where the system allows it, the owner of `from`. Throws
// zarrbits::error.
void copy_file_attributes(const std::string& from, const std::string& to);

}  // namespace zarrbits::repacking

#endif
