// SPDX-License-Identifier: BSL-1.0
//
// The names of sources: a file, local or on a server, and an object in it.
//
//   const zarrbits::source_name name = zarrbits::split_source("in.h5:/a/b");   // {"in.h5", "/a/b"}
//   const auto days = zarrbits::find_s3_sources("s3://bucket/data/*.nc");
//
#ifndef ZARRBITS_SOURCE_NAME_HPP
#define ZARRBITS_SOURCE_NAME_HPP

#include <zarrbits/detail/linkage.hpp>
#include <zarrbits/remote_access.hpp>

#include <string>
#include <vector>

namespace zarrbits {

// The parts of convert_source::name: "in.h5:/a/b" is object "/a/b" of "in.h5", unless a file has exactly that name.
struct source_name {
  std::string file;    // its name, "s3://bucket/key", or "https://host/path" (without its secrets: they are remembered)
  std::string object;  // "" for the whole file
};
// Asks only the file system which files exist.
source_name split_source(const std::string& text);

// Names of the objects "s3://bucket/key" that match a pattern such as "s3://bucket/data/*.nc", in no order. In the key, `*`
// stands for any characters but "/", `?` for one character, `[a-z]` for one of these. If an object has the pattern itself as its
// name, that object alone. Empty if nothing matches. Lists the objects that begin as the pattern does. Throws error.
[[nodiscard]] std::vector<std::string> find_s3_sources(const std::string& pattern, const remote_access& remote = {});

// What references call local files, for readers who find them elsewhere: "<url>/b/c.h5" for "<folder>/b/c.h5".
struct source_base {
  std::string folder = {};  // a local folder; empty: that of the first source
  std::string url = {};     // "https://host/path", "s3://bucket/path"; ".": names are relative to the folder of the references
};

}  // namespace zarrbits

#endif
