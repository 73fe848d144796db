// SPDX-License-Identifier: BSL-1.0
//
// Names of Zarr nodes, which are UTF-8 and parts of file names, for HDF5's names, which are any bytes; and paths of both.
//
#ifndef ZARRBITS_TEXT_NODE_NAMES_HPP
#define ZARRBITS_TEXT_NODE_NAMES_HPP

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::text {

constexpr std::size_t max_name_bytes = 255;  // bytes, on every common file system
constexpr std::string_view hashed_name = "%~";

// The name of a Zarr node for an HDF5 link name: the same, except for bytes that a store or Zarr v3 cannot have, which become
// %XX. Names too long for a file system end in "%~" and 128 bits of their SHA-256. Where a name is not the link's, the notes of
// the group have that: "%41" may also be a link's own name. Never empty, never "." or "..", without "/", "\" (which zarr-python
// treats as "/") and control characters, never beginning with "__" or ".zarrbits-", never "zarr.json".
std::string node_name(std::string_view link_name);

// Like node_name(), for the names of one group, all of them different: "a/b" and "a%2Fb" get different ones.
std::vector<std::string> node_names(std::span<const std::string_view> names);

// Zarr v3 reserves names that begin with "__", but zarr-python has them: "__a" for the node_name() of "__a", others unchanged.
std::string with_reserved_prefix(std::string_view link_name, std::string node_name);

// A node name that differs from `name` in more than case, or in spelling: the first letter becomes %XX.
std::string make_case_unique(std::string_view name);

// ASCII letters in lower case, to find names that are equal on a case-insensitive file system.
std::string case_fold(std::string_view name);

// Whether the object under this key of a store is the metadata of a node: "a/zarr.json", or that of the root.
bool is_node_key(std::string_view key);

std::string join_path(std::string_view parent, std::string_view name);
// "c" of "/a/b/c".
std::string base_name(std::string_view path);
// "a/b" for "a/b//"; "/" stays.
std::string strip_trailing_slashes(std::string path);

}  // namespace zarrbits::text

#endif
