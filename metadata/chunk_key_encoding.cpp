// SPDX-License-Identifier: BSL-1.0
#include "metadata/chunk_key_encoding.hpp"

#include "metadata/named_configuration.hpp"
#include "metadata/parse_error.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace zarrbits::metadata {

std::string chunk_key_encoding::key(std::span<const std::uint64_t> index) const {
  std::string key = v2 ? "" : "c";
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (i > 0 || !v2) key += separator;
    key += std::to_string(index[i]);
  }
  return key.empty() ? "0" : key;
}

std::optional<std::vector<std::uint64_t>> chunk_key_encoding::index(std::string_view key, std::size_t rank) const {
  std::vector<std::uint64_t> index;
  if (!v2) {
    if (!key.starts_with('c')) return {};
    key.remove_prefix(1);
    if (!key.empty() && key[0] != separator) return {};
    if (!key.empty()) key.remove_prefix(1);
  }
  if (rank == 0) return key == (v2 ? "0" : "") ? std::optional(index) : std::nullopt;
  while (index.size() < rank) {
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), n);
    if (error != std::errc()) return {};
    key.remove_prefix(static_cast<std::size_t>(end - key.data()));
    index.push_back(n);
    if (index.size() == rank) break;
    if (key.empty() || key[0] != separator) return {};
    key.remove_prefix(1);
  }
  return key.empty() ? std::optional(std::move(index)) : std::nullopt;
}

chunk_key_encoding parse_key_encoding(const nlohmann::json& extension) {
  const auto [name, configuration] = parse_named_configuration(extension);
  if (name != "default" && name != "v2") throw unknown_extension("the chunk key encoding " + name);
  const bool v2 = name == "v2";
  const std::string separator = configuration.value("separator", std::string(v2 ? "." : "/"));
  if (separator != "." && separator != "/") throw parse_error("the separator of the chunk keys is neither \".\" nor \"/\"");
  return {v2, separator[0]};
}

text::json to_json(const chunk_key_encoding& keys) {
  return to_json({keys.v2 ? "v2" : "default", {{"separator", std::string(1, keys.separator)}}});
}

std::string chunk_key(std::string_view store_path, std::span<const std::uint64_t> index, std::size_t trailing) {
  std::string key(store_path.substr(std::min<std::size_t>(1, store_path.size())));
  key += key.empty() ? "c" : "/c";
  for (const std::uint64_t i : index) key.append("/").append(std::to_string(i));
  for (std::size_t i = 0; i < trailing; ++i) key += "/0";
  return key;
}

std::optional<std::vector<std::uint64_t>> chunk_coordinates(std::string_view text) {
  std::vector<std::uint64_t> coordinates;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('/'));
    std::uint64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    if (error != std::errc() || end != part.data() + part.size()) return {};
    coordinates.push_back(index);
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return coordinates;
}

std::string to_v2_key(std::string_view key) {
  // names of arrays may be numbers, or "c": the last part counts that is not a number
  std::size_t end = key.size(), begin = 0;
  for (;; end = begin - 1) {
    const std::size_t slash = end == 0 ? key.npos : key.rfind('/', end - 1);
    begin = slash == key.npos ? 0 : slash + 1;
    const std::string_view part = key.substr(begin, end - begin);
    if (part == "c") break;
    if (begin == 0 || part.empty() || part.find_first_not_of("0123456789") != part.npos) return std::string(key);
  }
  std::string index(key.substr(std::min(key.size(), end + 1)));
  std::replace(index.begin(), index.end(), '/', dotted_keys.separator);
  return std::string(key.substr(0, begin)) + (index.empty() ? "0" : index);
}

std::string from_v2_key(std::string_view key) {
  const std::size_t begin = key.rfind('/') + 1;
  std::string index(key.substr(begin));
  if (index.empty() || index.find_first_not_of("0123456789.") != index.npos) return std::string(key);
  std::replace(index.begin(), index.end(), dotted_keys.separator, '/');
  return std::string(key.substr(0, begin)) + "c/" + index;
}

std::string metadata_key(std::string_view store_path) {
  std::string key(store_path.substr(std::min<std::size_t>(1, store_path.size())));
  return key.empty() ? "zarr.json" : key + "/zarr.json";
}

}  // namespace zarrbits::metadata
