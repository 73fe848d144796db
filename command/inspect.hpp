// SPDX-License-Identifier: BSL-1.0
//
// What is in an HDF5 file or a Zarr v3 store: groups, arrays, and how they are stored. Values are not read.
//
//   inspect::tree t = inspect::read("in.h5");
//   for (const auto& n : t.nodes) std::cout << n.path << '\n';
//
#ifndef ZARRBITS_COMMAND_INSPECT_HPP
#define ZARRBITS_COMMAND_INSPECT_HPP

#include "verify/zarr/store_reader.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits::inspect {

using json = nlohmann::ordered_json;

struct node {
  std::string path;                                 // "/a/b", as people see it
  std::string kind;                                 // "group", "array", "datatype", "link", "unreadable"
  std::string type;                                 // of arrays: "float32", "int16 big-endian"
  std::optional<std::vector<std::uint64_t>> shape;  // nothing: null dataspace
  std::string layout;                               // HDF5: "contiguous", "compact", "virtual", "external"; empty: chunked
  std::vector<std::uint64_t> chunk;                 // its shape
  std::vector<std::uint64_t> shard;                 // its shape, where chunks are inside of shards
  std::string codecs;                               // filters or codecs, in words
  std::uint64_t stored_bytes = 0;
  std::uint64_t objects = 0;  // chunks of the file, files of the store
  std::uint64_t attributes = 0;
  std::string note;  // target of a link; why it is unreadable
  json details;      // data type and codecs as they stand there
};

struct tree {
  std::string name, format;  // "HDF5", "Zarr v3"
  std::string top = "/";     // where in the file the first node is
  std::vector<node> nodes;   // parents first, in the order of names
  std::uint64_t bytes = 0;   // of the file, of all files of the store
  std::uint64_t files = 0;
  std::string incomplete;  // why not everything is told
};

using told = std::function<void(const std::string& object)>;

// `endpoint`: the server of stores in S3. Throws command_error or store_error where the name is neither.
// `lock`: of HDF5 files, as convert_options has it.
tree read(const std::string& name, const std::string& endpoint = "", bool lock = true, const told& at = {});
tree read_hdf5(const std::string& file, const std::string& object, bool lock, const told& at);
tree read_zarr(const verification::store_folder& store, const told& at);

}  // namespace zarrbits::inspect

#endif
