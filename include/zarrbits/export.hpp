// SPDX-License-Identifier: BSL-1.0
//
// Zarr v3 stores to HDF5 and netCDF-4 files: the way back from <zarrbits/convert.hpp>, and the way to a file for stores of
// others.
//
//   zarrbits::export_report r = zarrbits::export_store({.store = "in.zarr", .target = "out.nc"});
//   if (r.has_losses()) std::cerr << r.report_json();   // what is not in the file, and why
//
// Chunks that one of HDF5's filters has in the same form are copied; the others are decoded and encoded again. What `convert`
// noted in the store (types, links, references, limits) becomes what it was.
//
// Needs libhdf5 at link time, the header does not. It keeps process-wide state: call export_store() from one thread at a time.
//
#ifndef ZARRBITS_EXPORT_HPP
#define ZARRBITS_EXPORT_HPP

#include <zarrbits/convert_options.hpp>
#include <zarrbits/convert_report.hpp>
#include <zarrbits/error.hpp>
#include <zarrbits/file_format.hpp>
#include <zarrbits/reason_code.hpp>
#include <zarrbits/remote_access.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits {

// How chunks are compressed that cannot be copied.
enum class export_filter {
  none,     // not at all
  deflate,  // shuffle and deflate, which every HDF5 reads
  zstd,     // shuffle and Zstandard, filter 32015, whose readers need a plugin
};

struct export_report;

// What is exported, and how.
struct export_options {
  // A directory, a file "x.zip", references, or "s3://bucket/prefix"; with ":/a/b" at the end, a node of it.
  std::string store = {};
  std::optional<concatenation> concat = {};  // not set: only `store`; of several stores, not `is_new` and not `append`
  std::string target = {};                   // the file to write; a name that ends in ".nc" gets netCDF's dimensions
  remote_access remote = {};                 // how stores on servers are reached
  std::vector<std::string> external = {};    // folders of files that references and links may lead to; "all": any
  bool overwrite = false;                    // replace a target that is an HDF5 file
  bool fsync = false;                        // flush the file to the disk before it gets its name
  bool keep_going = false;                   // leave out what is damaged, and report it, instead of stopping
  std::vector<std::string> include = {};     // patterns of the store's paths: only these, with the groups above them
  std::vector<std::string> exclude = {};     // and without these, and what is below them
  // Copy chunks only into filters that every libhdf5 has, so no reader needs a plugin; other chunks are encoded again.
  bool standard_filters = true;
  export_filter filter = export_filter::deflate;    // of chunks that are encoded again
  int level = 4;                                    // of that filter
  std::optional<bool> netcdf = {};                  // netCDF's dimensions; not set: if the store is that of a netCDF file
  file_format format = file_format::compatible;     // who can read the file
  std::uint64_t page_size = 0;                      // bytes of a page: metadata is together, for servers; 0: no pages
  unsigned threads = 0;                             // threads that make chunks; 0: as many as there are processors
  std::uint64_t memory = std::uint64_t{512} << 20;  // limit for chunks in progress, and for values that are read as a whole
  std::function<void(const std::string& path, std::uint64_t done, std::uint64_t chunks)> progress = {};  // called repeatedly
  std::function<void(const std::string& sentence)> warning = {};  // called with a promise that this run cannot keep
  std::function<void(const std::string& sentence)> note = {};     // called with something unexpected that is not wrong
  // Called before the last step, with the temporary name of the complete file; if it throws an exception, there is no file.
  std::function<void(const std::string& file, const export_report& report)> before_done = {};
};

// What became of one object of the store.
struct exported_object {
  std::string path;                                          // in the file
  std::string store_path;                                    // in the store, if it differs
  object_kind kind = object_kind::group;                     // what it is about
  std::string attribute;                                     // its name, if `kind` is attribute
  zarrbits::outcome outcome = outcome::mapped;               // as convert_report.hpp has it: of a dataset, what its chunks needed
  std::string reason;                                        // why skipped or unusual
  reason_code code = reason_code::none;                      // of `reason`
  std::string filters;                                       // of a dataset, in the order of encoding: "shuffle, deflate"
  std::uint64_t chunks = 0;                                  // written
  std::uint64_t store_bytes = 0;                             // size of the chunks in the store
  std::uint64_t file_bytes = 0;                              // size of the chunks in the file
  std::vector<std::vector<std::uint64_t>> lost_chunks = {};  // grid coordinates of chunks that are damaged
};

// The result of an export.
struct export_report {
  std::string store;                     // as in the options
  std::string target;                    // as in the options
  bool netcdf = false;                   // with netCDF's dimensions
  std::vector<exported_object> objects;  // everything that the store has
  std::vector<joined_source> sources;    // with export_options::concat, in order; otherwise empty
  std::uint64_t file_bytes = 0;          // size of the file
  double seconds = 0;                    // elapsed time

  // True if something is not in the file.
  bool has_losses() const noexcept;
  // The report as strict JSON; docs/schema has its keys.
  std::string report_json() const;
};

// Throws error if an option makes no sense. export_store() calls it first.
void check_options(const export_options& options);

// Exports. Throws error; then there is no file. An object that HDF5 cannot have does not stop the others; the report has it.
[[nodiscard]] export_report export_store(const export_options& options);

}  // namespace zarrbits

#endif
