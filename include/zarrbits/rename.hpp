// SPDX-License-Identifier: BSL-1.0
//
// References that call their sources by other names than when they were made.
//
//   zarrbits::rename_report r = zarrbits::rename_references(
//       {.references = "refs.json", .old_name = "/data", .new_name = "https://host/archive"});
//   std::cout << r.files << " files have other names\n";
//
// A program that uses zarrbits::convert links libhdf5; this function does not call it.
//
#ifndef ZARRBITS_RENAME_HPP
#define ZARRBITS_RENAME_HPP

#include <zarrbits/error.hpp>

#include <cstdint>
#include <string>

namespace zarrbits {

// Which references are changed, and how.
struct rename_options {
  std::string references = {};  // a JSON file, or a folder of Parquet files
  // A file or a folder, as the references call it: "/data" (the same as "file:///data"), "s3://bucket/a", "https://host/a", or a
  // path from the folder of the references. Names that are this one, or below it, begin with new_name instead.
  std::string old_name = {};
  std::string new_name = {};                        // the same kinds of names
  bool fsync = false;                               // flush the new references to the disk before they replace the old ones
  std::uint64_t memory = std::uint64_t{512} << 20;  // limit for the names of files, which are in memory
};

// What was changed.
struct rename_report {
  std::string references;   // as in the options
  std::uint64_t files = 0;  // sources, and files beside the references, that have other names now
  double seconds = 0;       // elapsed time
  // The report as strict JSON; docs/schema has its keys.
  std::string report_json() const;
};

// Throws error if an option makes no sense. rename_references() calls it first.
void check_options(const rename_options& options);

// Replaces the references in one step: a reader has the old ones or the new ones. Of a file with a new name, the references have
// only the size, as with source_base: copies have times and ETags of their own. Throws error, also if no name is like old_name;
// the references are then as they were.
rename_report rename_references(const rename_options& options);

}  // namespace zarrbits

#endif
