// SPDX-License-Identifier: BSL-1.0
#include "io/chunk_key_index.hpp"

#include "metadata/node.hpp"

#include <algorithm>
#include <string_view>

namespace zarrbits::io {

namespace {

// What is below the array in a key, without the slash.
std::string_view relative_key(const std::string& array, std::string_view key) {
  return key.substr(array.empty() ? 0 : array.size() + 1);
}

bool is_below(const std::string& array, const std::string& key) {
  return array.empty() || (key.size() > array.size() + 1 && key.starts_with(array) && key[array.size()] == '/');
}

// Whether it is `rank` numbers, each after a separator.
bool is_number_list(std::string_view text, char separator, std::size_t rank) {
  std::size_t n = 0;
  for (; text.starts_with(separator); ++n) {
    const std::size_t end = std::min(text.find(separator, 1), text.size());
    const std::string_view digits = text.substr(1, end - 1);
    if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return false;
    text.remove_prefix(end);
  }
  return n == rank && text.empty();
}

bool has_v3_key(const chunk_key_index::entry& array, const std::string& key) {
  if (!is_below(array.first, key)) return false;
  const std::string_view suffix = relative_key(array.first, key);
  return suffix.starts_with('c') && is_number_list(suffix.substr(1), '/', array.second.size());
}

}  // namespace

std::string path_of_node(const std::string& key) {
  return key.substr(0, key.size() - std::min(key.size(), std::string_view("/zarr.json").size()));
}

bool chunk_key_index::add(const std::string& array, const text::json& node) {
  auto n = metadata::chunks_along(node);
  if (!n) return false;
  if (metadata::key_encoding_of(node) == metadata::chunk_key_encoding{.v2 = true, .separator = '/'}) with_slashes_.insert(array);
  arrays_.insert_or_assign(array, std::move(*n));
  return true;
}

const chunk_key_index::entry* chunk_key_index::find_array(const std::string& key) const {
  if (last_ && has_v3_key(*last_, key)) return last_;
  for (std::size_t position = key.size(); position > 0;) {
    position = key.rfind('c', position - 1);
    if (position == key.npos) break;
    if (position > 0 && key[position - 1] != '/') continue;
    const auto it = arrays_.find(key.substr(0, position > 0 ? position - 1 : 0));
    if (it != arrays_.end() && has_v3_key(*it, key)) return last_ = &*it;
  }
  return nullptr;
}

std::string chunk_key_index::to_v2_key(const std::string& key) const {
  const entry* const array = find_array(key);
  if (!array) return key;
  const std::size_t begin = array->first.empty() ? 0 : array->first.size() + 1;
  if (array->second.empty()) return key.substr(0, begin) + "0";
  std::string numbers = key.substr(begin + 2);
  std::replace(numbers.begin(), numbers.end(), '/', '.');
  return key.substr(0, begin) + numbers;
}

std::string chunk_key_index::to_v3_key(const std::string& key) const {
  for (std::size_t slash = key.rfind('/');; slash = slash == 0 ? key.npos : key.rfind('/', slash - 1)) {
    const std::string array = slash == key.npos ? "" : key.substr(0, slash);
    if (!last_ || last_->first != array) {
      const auto it = arrays_.find(array);
      if (it == arrays_.end() && slash != key.npos) continue;
      if (it == arrays_.end()) return key;
      last_ = &*it;
    }
    const std::size_t begin = slash == key.npos ? 0 : slash + 1;
    const char separator = with_slashes_.contains(array) ? '/' : '.';
    std::string numbers = separator + key.substr(begin);
    if (last_->second.empty()) return numbers.substr(1) == "0" ? key.substr(0, begin) + "c" : key;
    if (!is_number_list(numbers, separator, last_->second.size())) return key;
    std::replace(numbers.begin(), numbers.end(), '.', '/');
    return key.substr(0, begin) + "c" + numbers;
  }
}

}  // namespace zarrbits::io
