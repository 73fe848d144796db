// SPDX-License-Identifier: BSL-1.0
//
// Names and texts on their way from HDF5, where they are any bytes, to Zarr, where they are UTF-8 and parts of file names.
//
#ifndef ZARRBITS_CONVERT_NAMES_HPP
#define ZARRBITS_CONVERT_NAMES_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace zarrbits::conversion {

bool is_utf8(std::string_view bytes) noexcept;

// For people, reports and JSON keys: each byte that is not UTF-8 becomes %XX, all else stays.
std::string shown(std::string_view bytes);

// The name of a Zarr node for an HDF5 link name. Reversible: percent-decoding gives the link name back, except for names that a file
// system cannot hold (then they end in "%~" and a hash, and the parent's attributes tell the whole name). Never empty, never
// "." or "..", without "/", "\" and control characters, never beginning with "__", never "zarr.json".
std::string node_name(std::string_view link_name);

// A node name that differs from `name` in letters, not only in case: the first letter becomes %XX.
std::string unlike_by_case(std::string_view name);

// ASCII letters in lower case, to find names that a file system without case takes for one.
std::string folded(std::string_view name);

std::string base64(std::span<const std::byte> bytes);
std::string base64(std::string_view bytes);

std::string join_path(std::string_view parent, std::string_view name);

// "3 chunks", "1 chunk".
std::string counted(std::uint64_t n, std::string_view noun);
// "12.3 MiB"
std::string human_bytes(std::uint64_t bytes);

}  // namespace zarrbits::conversion

#endif
