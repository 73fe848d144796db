// SPDX-License-Identifier: BSL-1.0
//
// The checksum that the DANDI archive has for a Zarr store: MD5 of a JSON text for each folder, from the deepest ones up
// (https://github.com/dandi/zarr_checksum).
//
#include "digest/dandi_checksum.hpp"

#include "digest/object_hashes.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <utility>

namespace zarrbits::digesting {

namespace {

struct folder_node {
  std::map<std::string, folder_node> folders;
  std::map<std::string, const object_hash*> files;
};

struct folder_checksum {
  std::string digest;
  std::uint64_t count = 0, size = 0;
};

folder_checksum checksum_of(const folder_node& node) {
  nlohmann::ordered_json folders = nlohmann::ordered_json::array(), files = nlohmann::ordered_json::array();
  folder_checksum sum;
  for (const auto& [name, child] : node.folders) {
    const folder_checksum inner = checksum_of(child);
    sum.count += inner.count;
    sum.size += inner.size;
    folders.push_back({{"digest", inner.digest}, {"name", name}, {"size", inner.size}});
  }
  for (const auto& [name, object] : node.files) {
    ++sum.count;
    sum.size += object->size;
    files.push_back({{"digest", object->hash}, {"name", name}, {"size", object->size}});
  }
  const nlohmann::ordered_json document = {{"directories", std::move(folders)}, {"files", std::move(files)}};
  sum.digest = md5_of_text(document.dump(-1, ' ', true)) + "-" + std::to_string(sum.count) + "--" + std::to_string(sum.size);
  return sum;
}

}  // namespace

std::string tree_checksum(const std::vector<object_hash>& objects) {
  folder_node root;
  for (const object_hash& object : objects) {
    folder_node* node = &root;
    std::size_t begin = 0;
    for (std::size_t end = object.name.find('/'); end != std::string::npos; end = object.name.find('/', begin)) {
      node = &node->folders[object.name.substr(begin, end - begin)];
      begin = end + 1;
    }
    node->files[object.name.substr(begin)] = &object;
  }
  return checksum_of(root).digest;
}

}  // namespace zarrbits::digesting
