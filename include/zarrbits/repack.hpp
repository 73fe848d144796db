// SPDX-License-Identifier: BSL-1.0
//
// HDF5 to HDF5: a file gets another layout, chunks or filters, and stays the same in all else.
//
//   const auto cmip7 = zarrbits::file_layout::cmip7;
//   zarrbits::repack_report r = zarrbits::repack({.source = "in.nc", .target = "out.nc", .layout = cmip7});
//   zarrbits::layout_report c = zarrbits::check_layout({.source = "out.nc", .layout = cmip7});
//   if (!c.conforms()) std::cerr << c.report_json();   // each rule, and the value that the file has
//
// All metadata of the new file is in one block at its start. Chunks that keep their shape and filters are copied as they are
// stored, also those of filters that nothing here can decode. Values, types, attributes, links and their orders are those of the
// source; `zarrbits verify` compares both files.
//
// Needs libhdf5 at link time, the header does not. It keeps process-wide state: call these functions from one thread at a time.
//
#ifndef ZARRBITS_REPACK_HPP
#define ZARRBITS_REPACK_HPP

#include <zarrbits/error.hpp>
#include <zarrbits/file_format.hpp>
#include <zarrbits/remote_access.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zarrbits {

// Which rules a file follows.
enum class file_layout {
  asis,   // metadata before all values
  cloud,  // for files on servers: that, at most 8 MiB of metadata, in pages; chunks of `chunk_bytes` to 16 MiB
  cmip7,  // for CMIP7's archives: indexes of chunks before all chunks; time and its bounds in one chunk; data chunks of 4 MiB
};
// Its name: "asis".
const char* to_string(file_layout layout) noexcept;

// What is repacked, and how.
struct repack_options {
  std::string source = {};                 // a file, "s3://bucket/key" or "https://host/path"
  std::string target = {};                 // the file to write; empty: the source is replaced, if it does not conform
  remote_access remote = {};               // how a source on a server is reached
  file_layout layout = file_layout::asis;  // the rules
  std::uint64_t chunk_bytes = 4U << 20;    // bytes of a chunk that a rule makes larger, before compression; at least 4 MiB
  std::vector<std::string> chunks = {};    // "/a/b=64x64": the shape of the chunks of what the pattern matches; -1: all of it
  std::vector<std::string> filters = {};   // "none", "deflate:4", "zstd:3", for all chunked datasets; or "/a/b=deflate:4"
  std::uint64_t page_size = 0;             // bytes of a page; 0: no pages or, for `cloud`, as many as the metadata needs
  file_format format = file_format::compatible;     // who can read the file
  bool overwrite = false;                           // replace a target that is an HDF5 file
  bool fsync = false;                               // flush the file to the disk before it gets its name
  bool lock = true;                                 // false: also read a file that another process has open for writing
  unsigned threads = 0;                             // that decode and encode; 0: as many as there are processors
  std::uint64_t memory = std::uint64_t{512} << 20;  // limit for values in progress
  // Values of chunks of very different shape that do not fit in `memory`: the folder for a file with them. Not set: the target's.
  std::string scratch = {};
  std::function<void(const std::string& path, std::uint64_t done, std::uint64_t bytes)> progress = {};  // called repeatedly
  std::function<void(const std::string& sentence)> warning = {};  // called with a promise that this run cannot keep
};

// A rule of a layout, applied to a file or a dataset.
struct layout_finding {
  std::string path;      // of the dataset; "/": of the file
  std::string rule;      // "metadata", "index", "time_chunks", "bounds_chunks", "data_chunks", "chunk_bytes", "metadata_bytes"
  std::string value;     // what the file has: "1 x 144 x 192 (108 KiB)"
  std::string wanted;    // "at least 4 MiB, or one chunk"
  bool met = true;       // it has that
  bool required = true;  // false: the rule does not ask it of this file, but a repacked one has it
};

// True if all rules are met that are required.
bool conforms(const std::vector<layout_finding>& findings) noexcept;

// Whether a file follows the rules of a layout.
struct layout_report {
  std::string source;                      // as in the options
  file_layout layout = file_layout::asis;  // whose rules they are
  std::vector<layout_finding> findings;    // each rule
  // True if all rules are met that are required.
  bool conforms() const noexcept;
  // The report as strict JSON; docs/schema has its keys.
  std::string report_json() const;
};

// What became of a dataset.
struct repacked_dataset {
  std::string path;                                // in both files
  bool recoded = false;                            // its chunks were decoded and encoded; else they were copied
  std::string reason;                              // why: a rule, or an option
  std::vector<std::uint64_t> source_chunk, chunk;  // shapes; empty: it has no chunks
  std::string source_filters, filters;             // in the order of encoding: "shuffle, deflate"
  std::uint64_t chunks = 0;                        // written
  std::uint64_t source_bytes = 0, bytes = 0;       // of its values, as stored
};

// The result of a repack.
struct repack_report {
  std::string source, target;                 // as in the options
  file_layout layout = file_layout::asis;     // as in the options
  bool unchanged = false;                     // the source conformed already, and was left as it is
  std::vector<repacked_dataset> datasets;     // all of them
  std::vector<layout_finding> findings;       // of the new file
  std::uint64_t objects = 0;                  // groups, datasets and named types
  std::uint64_t dangling_references = 0;      // that led to nothing that links lead to, and are null now
  std::uint64_t source_bytes = 0, bytes = 0;  // sizes of both files
  std::uint64_t metadata_bytes = 0;           // at the start of the new file
  double seconds = 0;                         // elapsed time
  // The report as strict JSON; docs/schema has its keys.
  std::string report_json() const;
};

// Throws error if an option makes no sense. repack(), plan() and check_layout() call it first.
void check_options(const repack_options& options);

// Repacks. Throws error; then there is no new file, and the source is as it was.
[[nodiscard]] repack_report repack(const repack_options& options);

// What repack() would report; writes nothing. Sizes, chunks and seconds are about those, by samples of the values, which are read
// and encoded; the findings are the source's. Throws error.
[[nodiscard]] repack_report plan(const repack_options& options);

// Compares a file with the rules of options.layout. Reads metadata alone. Throws error.
[[nodiscard]] layout_report check_layout(const repack_options& options);

}  // namespace zarrbits

#endif
