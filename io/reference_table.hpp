// SPDX-License-Identifier: BSL-1.0
//
// References in kerchunk's format, as they are stored: a JSON file (version 0 or 1), or a folder of Parquet files. A key is an
// object itself, a file, or a range of one. Their metadata are of Zarr v3 or v2.
//
//   const reference_table table = read_references("refs.json", memory);
//   const reference& chunk = table.keys.at("a/c/0/0");   // "a/0.0" in Zarr v2
//
#ifndef ZARRBITS_IO_REFERENCE_TABLE_HPP
#define ZARRBITS_IO_REFERENCE_TABLE_HPP

#include "io/files.hpp"
#include "text/json_text.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits::io {

// These are not references, or they are damaged. what() is a sentence.
struct reference_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct reference {
  std::optional<std::size_t> file = {};  // the index in reference_table::files; not set: `content` is the object
  std::uint64_t offset = 0, size = 0;    // bytes; `size` is that of `content`, too
  bool is_entire_file = false;           // all of the file, whose size is not known
  std::string content = {};
};

struct referenced_file {
  std::string url;                       // as it is written: "file:///a/b.h5"
  std::optional<file_state> state = {};  // when the references were made
  bool size_only = false;                // only the size of `state` is known: the file is for readers who have a copy of it
};
// Whether a file still is what the references were made of, as far as they say.
bool is_unchanged(const referenced_file& file, const file_state& current);

// Whose metadata references have.
struct zarr_formats {
  bool v2 = false, v3 = true;
};

// Only its form is checked: offsets, sizes and files may be anything.
struct reference_table {
  std::map<std::string, reference> keys;  // as a store in a folder has them: "a/zarr.json", "a/c/0/0"
  std::vector<referenced_file> files;
  zarr_formats formats = {};
  bool relative = false;          // names of files were relative to the folder of the references; here, none is
  std::string differing_v2 = {};  // a key of Zarr v2's metadata that does not say what Zarr v3's say; empty if none
};

// Reads a file or a folder. Throws reference_error, also if they would take more than `memory`.
reference_table read_references(const std::string& path, std::uint64_t memory);

// Whether a file or a folder has references that zarrbits made, as far as its beginning shows.
bool is_zarrbits_references(const std::string& path) noexcept;

// True for a folder of references in Parquet files. The consolidated metadata of Zarr v2 have the same name as theirs.
bool is_parquet_references(const std::string& path) noexcept;

// Files and folders that references may lead to: the sources themselves, what lies beside them, and the folders `external`, of
// which "all" stands for every file; of objects in S3, only the sources.
std::vector<std::string> allowed_paths(const std::vector<std::string>& sources, const std::vector<std::string>& external);

// The name of the file next to references that holds content that is in no source and too large for the references;
// each append adds one, with the next number.
std::string data_file_path(const std::string& references, std::size_t number = 0);
// Whether it is such a file, with any number.
bool is_data_file(const std::string& references, const std::string& file);

// The folder next to references that are made in partitions, with the work of each, until they are complete.
std::string partitions_path(const std::string& references);

// URLs of local files and of S3.
constexpr std::string_view file_url = "file://", s3_url = "s3://";

// In the JSON of references that have only Zarr v2's metadata: those of Zarr v3, from which they were made.
constexpr const char* nodes_key = "zarrbits.nodes";
// What both forms begin with.
constexpr const char* references_signature = R"({"version":1,"zarrbits":{)";
// In a folder: the metadata, and the references of an array, some thousand in each file.
constexpr const char* references_metadata = ".zmetadata";
std::string references_part(const std::string& array, std::uint64_t number);
constexpr std::uint64_t max_part_references = 1'000'000;  // in one file

}  // namespace zarrbits::io

#endif
