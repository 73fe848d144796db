// SPDX-License-Identifier: BSL-1.0
//
// Converts names and texts from HDF5, where they are any bytes, to Zarr, where they are UTF-8 and parts of file names.
//
#ifndef ZARRBITS_TEXT_NAMES_HPP
#define ZARRBITS_TEXT_NAMES_HPP

#include "text/words.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::conversion {

using text::counted;
using text::human_bytes;
using text::is_utf8;
using text::utf8_length;

// A name for people, reports and JSON keys: each byte that is not UTF-8 becomes %XX, and so does a "%" that would look like such
// an escape; the rest stays. Different names stay different.
std::string shown(std::string_view name);
// The inverse of shown().
std::string unshown(std::string_view name);
// A sentence whose names are already shown(): each byte that is not UTF-8 becomes %XX.
std::string utf8_text(std::string_view text);

constexpr std::size_t longest_name = 255;  // bytes, on every common file system
// The key of zarrbits' notes on what Zarr has no place for: links, enumerations, unlimited dimensions, types.
constexpr const char* own_key = "zarrbits";
// The same among attributes that xarray and netCDF-C hide: they hide names with this prefix.
constexpr const char* hidden_own_key = "_nc_zarrbits";
// A name in a store with this prefix belongs to the converter.
constexpr std::string_view own_prefix = ".zarrbits-";
// A folder in the root of an unfinished store, with the conversion's own files (plan and journal). While it has it, a store has
// no zarr.json in its root; it shows --overwrite what it may remove, and --resume what it may resume.
constexpr const char* unfinished_folder = ".zarrbits-unfinished";
// A file in the folder of an unfinished store: a process that writes has locked it.
constexpr const char* lock_name = "lock";
constexpr std::string_view hashed_name = "%~";

// The name of a Zarr node for an HDF5 link name: the same, except for bytes that a store or Zarr v3 cannot have, which become
// %XX. Names too long for a file system end in "%~" and 128 bits of their SHA-256. Where a name is not the link's, the notes of
// the group have that: "%41" may also be a link's own name. Never empty, never "." or "..", without "/", "\" (which zarr-python
// treats as "/") and control characters, never beginning with "__" or ".zarrbits-", never "zarr.json".
std::string node_name(std::string_view link_name);

// The same for names of one group, all of them different: "a/b" and "a%2Fb" get different ones.
std::vector<std::string> node_names(std::span<const std::string_view> names);

// Zarr v3 reserves names that begin with "__", but zarr-python has them: "__a" for the node_name() of "__a", others unchanged.
std::string with_reserved_prefix(std::string_view link_name, std::string node_name);

// A node name that differs from `name` in more than case, or in spelling: the first letter becomes %XX.
std::string unlike_by_case(std::string_view name);

// ASCII letters in lower case, to find names that are equal on a case-insensitive file system.
std::string folded(std::string_view name);

std::string base64(std::span<const std::byte> bytes);
std::string base64(std::string_view bytes);
// Empty if the text is not base64.
std::optional<std::vector<std::byte>> decode_base64(std::string_view text);

// Whether the object under this key of a store is the metadata of a node: "a/zarr.json", or that of the root.
bool is_node_key(std::string_view key);

std::string join_path(std::string_view parent, std::string_view name);
// "c" of "/a/b/c".
std::string leaf_of(std::string_view path);

}  // namespace zarrbits::conversion

#endif
