// SPDX-License-Identifier: BSL-1.0
//
// A store in a directory or in S3, or of references, that will grow: its metadata, its arrays, and its list of joined files.
//
//   const append_target there("out.zarr", {}, {}, 512 << 20);
//   if (const text::json* node = there.node("/t2m")) ...
//   std::shared_ptr<const existing_array> values = there.array("/t2m", axis);
//
#ifndef ZARRBITS_APPEND_APPEND_TARGET_HPP
#define ZARRBITS_APPEND_APPEND_TARGET_HPP

#include "append/existing_array.hpp"
#include "hdf5/chunk_source.hpp"
#include "hdf5/source_files.hpp"
#include "io/source_url_map.hpp"
#include "text/json_text.hpp"
#include "zarr/read/store_reader.hpp"
#include "zarr/read/zarr_reader.hpp"

#include <zarrbits/convert_report.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::append {

// A file that the store already has.
struct recorded_source {
  std::string file;  // its name, without folders
  std::uint64_t first = 0, count = 0;
  text::json state;  // its state_note(); null: unknown
};

// Identifies a file and its state: size, modification time, checksum; in S3 size and ETag. Throws zarrbits::error.
text::json state_note(const hdf5::source_files::entry& file);

// The files of a store, for its root: the start of each, and its state_note(). Files that are left out are not in it.
text::json source_notes(const std::vector<joined_source>& sources, const hdf5::source_files& files);

class append_target {
 public:
  // Reads all metadata. `remote`: of a store in S3. `sources`: files, and folders, next to which or in which references may
  // point; `base`: what their names stand for. Throws zarrbits::error.
  append_target(const std::string& path, const remote_access& remote, const std::vector<std::string>& sources,
                std::uint64_t memory, const std::optional<source_base>& base = {});

  const std::string& name() const { return name_; }
  // Every zarr.json, by the node's path: "/" and "/a/b". Without the digest of the values, which change.
  const std::map<std::string, text::json>& nodes() const { return nodes_; }
  const text::json* node(const std::string& path) const;
  // The notes of zarrbits at a node; an empty object if it has none.
  text::json notes(const std::string& path) const;
  // True if any node has some, other than of an append: zarrbits made the store. Of a plain file without a convention, the root
  // may have none.
  bool has_notes() const;

  // Null if there is no such array. `axis`: the axis along which it grows. Throws zarrbits::error.
  std::shared_ptr<const existing_array> array(const std::string& path, std::size_t axis) const;
  // The difference between an array and a dataset that is not joined, as the end of a sentence; "" if they agree. Throws
  // hdf5::failure, unsupported_dataset, zarrbits::error.
  std::string difference(const std::string& path, const hdf5::chunk_source& data) const;
  // The last two numbers of an array of one dimension, or fewer.
  std::vector<double> last_values(const std::string& path) const;

  const std::vector<recorded_source>& sources() const { return sources_; }
  // The checksum_of_text() of a zarr.json, by its key.
  const std::string& checksum_of(const std::string& key) const { return texts_.at(key); }
  // Checksum of all metadata.
  const std::string& checksum() const { return checksum_; }

 private:
  void read(const remote_access& remote, const std::vector<std::string>& sources, std::uint64_t memory);
  zarr::zarr_array open_array(const std::string& path) const;
  void read_sources();

  std::string name_;
  io::source_url_map names_;
  std::optional<zarr::store_folder> root_;
  std::map<std::string, text::json> nodes_;
  std::map<std::string, std::string> texts_;  // checksums
  std::vector<recorded_source> sources_;
  std::string checksum_;
};

}  // namespace zarrbits::append

#endif
