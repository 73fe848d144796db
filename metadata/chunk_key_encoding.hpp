// SPDX-License-Identifier: BSL-1.0
//
// Keys of chunks, below the folder of their array.
//
//   chunk_key_encoding().key({1, 2});                                    // "c/1/2"
//   chunk_key_encoding{.v2 = true, .separator = '.'}.index("1.2", 2);    // {1, 2}
//
#ifndef ZARRBITS_METADATA_CHUNK_KEY_ENCODING_HPP
#define ZARRBITS_METADATA_CHUNK_KEY_ENCODING_HPP

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::metadata {

struct chunk_key_encoding {
  bool v2 = false;  // without "c"
  char separator = '/';

  bool operator==(const chunk_key_encoding&) const = default;
  std::string key(std::span<const std::uint64_t> index) const;
  // Empty if it is not a key of a chunk of `rank` dimensions.
  std::optional<std::vector<std::uint64_t>> index(std::string_view key, std::size_t rank) const;
};

// "1.2", as in Zarr v2.
inline constexpr chunk_key_encoding dotted_keys{.v2 = true, .separator = '.'};

// Throws parse_error or unknown_extension.
chunk_key_encoding parse_key_encoding(const nlohmann::json& extension);
nlohmann::ordered_json to_json(const chunk_key_encoding& keys);

// Keys in a store, in the encoding that zarrbits writes.
// "/a/b" and {1, 2}: "a/b/c/1/2". Trailing dimensions that are missing in `index` have one chunk.
std::string chunk_key(std::string_view store_path, std::span<const std::uint64_t> index, std::size_t trailing = 0);
// The other way round: {1, 2} of "1/2"; nothing if these are not the coordinates of a chunk.
std::optional<std::vector<std::uint64_t>> chunk_coordinates(std::string_view text);
std::string metadata_key(std::string_view store_path);
// The key of a chunk in Zarr v2, and back: "a/b/1.2" of "a/b/c/1/2". Other keys stay as they are; that of a scalar comes back as
// one of a single dimension.
std::string to_v2_key(std::string_view key);
std::string from_v2_key(std::string_view key);

}  // namespace zarrbits::metadata

#endif
