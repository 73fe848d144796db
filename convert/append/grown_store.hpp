// SPDX-License-Identifier: BSL-1.0
//
// A store in a directory that is to grow: its metadata, its arrays, and of which files it is said to be made.
//
//   const grown_store there("out.zarr");
//   if (const json* node = there.node("/t2m")) ...
//   std::shared_ptr<const stored_values> values = there.array("/t2m", axis);
//
#ifndef ZARRBITS_CONVERT_APPEND_GROWN_STORE_HPP
#define ZARRBITS_CONVERT_APPEND_GROWN_STORE_HPP

#include "convert/hdf5/joined_parts.hpp"
#include "convert/text/json_text.hpp"

#include <zarrbits/convert.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::conversion {

// A file that is in the store already.
struct known_source {
  std::string file;  // its name, without folders
  std::uint64_t first = 0, count = 0;
  json state;  // as state_note() has it; null: not known
};

// What tells a file from another one, or from itself after a change: size, modification time, checksum. Throws convert_error.
json state_note(const joined_files::entry& file);

// Of which files a store is made, for its root: where each begins, and what state_note() has. Those that are left out are not in
// it.
json source_notes(const std::vector<joined_source>& sources, const joined_files& files);

class grown_store {
 public:
  // Reads all metadata. Throws convert_error.
  explicit grown_store(const std::string& path);

  const std::string& name() const { return name_; }
  // Every zarr.json, by the node's path: "/" and "/a/b".
  const std::map<std::string, json>& nodes() const { return nodes_; }
  const json* node(const std::string& path) const;
  // What zarrbits has noted at a node; an empty object where it has not.
  json notes(const std::string& path) const;
  // Puts a note of ours there where such notes are in this store.
  void set_note(json& node, const std::string& key, json value) const;

  // Null where there is no such array. `axis`: along which it grows. Throws convert_error.
  std::shared_ptr<const stored_values> array(const std::string& path, std::size_t axis) const;
  // What differs, as the end of a sentence, between an array and a dataset that is not joined; "" where nothing does. Throws
  // h5::failure, skip_dataset, convert_error.
  std::string difference(const std::string& path, const source_dataset& data) const;
  // The last numbers of an array of one dimension, up to two.
  std::vector<double> last_values(const std::string& path) const;

  const std::vector<known_source>& sources() const { return sources_; }
  // Of all metadata.
  const std::string& checksum() const { return checksum_; }

 private:
  void read();
  void read_sources();

  std::string name_;
  std::map<std::string, json> nodes_;
  std::vector<known_source> sources_;
  std::string checksum_;
};

}  // namespace zarrbits::conversion

#endif
