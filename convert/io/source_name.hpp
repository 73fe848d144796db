// SPDX-License-Identifier: BSL-1.0
//
// A source as the user writes it: a file, and perhaps an object in it.
//
#ifndef ZARRBITS_CONVERT_IO_SOURCE_NAME_HPP
#define ZARRBITS_CONVERT_IO_SOURCE_NAME_HPP

#include <string>

namespace zarrbits::conversion {

// "in.h5:/a/b" is object "/a/b" of "in.h5", unless a file has that very name. Else the object is empty.
struct source_name {
  std::string file, object;
};
source_name split_source(const std::string& text);

}  // namespace zarrbits::conversion

#endif
