// SPDX-License-Identifier: BSL-1.0
//
// Many HDF5 or netCDF-4 files as one: an HDF5 file with virtual datasets, whose values stay in the files, or with copies of them.
//
//   // tiles of a map for each month: where each belongs follows from the values of its time, x and y
//   zarrbits::combine({.sources = {"m1x0y0.nc", "m1x1y0.nc", "m2x0y0.nc"}, .dimensions = {"time", "x", "y"}, .target =
//   "all.nc"});
//
// Along each of the dimensions the values of its coordinate variable are in order, and say where a file's part lies; or a list
// does (`places`). A part that no file has reads as the fill value. Datasets without such a dimension are equal in all files.
// HDF5 1.10 or newer, and what builds on it, reads the file, and convert() copies the chunks of its parts, or refers to them.
// Times of another epoch are stored in that of the first file. In place of virtual datasets, the file may have aggregation
// variables of CF-1.13, or the values themselves:
//
//   zarrbits::combine({.sources = {"m1.nc", "m2.nc"}, .dimensions = {"time"}, .target = "all.nc", .copies = true});
//
// Needs libhdf5 at link time, the header does not. It keeps process-wide state: call these functions from one thread at a time.
//
#ifndef ZARRBITS_COMBINE_HPP
#define ZARRBITS_COMBINE_HPP

#include <zarrbits/error.hpp>
#include <zarrbits/remote_access.hpp>
#include <zarrbits/source_name.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits {

// What is combined, and how.
struct combine_options {
  std::vector<std::string> sources = {};     // files, on servers too with `copies`, `cf_aggregation` or `servers`
  std::vector<std::string> dimensions = {};  // names of those that the files have parts of; each has a coordinate variable
  // Set: the files are also steps of a new dimension of this name, the first one of all datasets but the dimension scales. With
  // `dimensions`, all files in one folder are the same step, and folders are in the order of the files; without, each file is
  // one.
  std::string new_dimension = {};
  // Set: for each source its place along `new_dimension`, if that is set, and along each of `dimensions`, counted in files from 0
  // on. The dimensions need no coordinate variables then, and values of those may be in any order.
  std::vector<std::vector<std::uint64_t>> places = {};
  std::string target = {};     // the HDF5 file to write
  bool relative_names = true;  // it names the sources relative to its own folder; false: by absolute names
  // What to do with a dataset that several files have for the same place, with other values: fail with a sentence, take that of
  // the first file, or leave it out.
  enum class different_type { refuse, first, skip } different = different_type::refuse;
  // The new file has the values of all files itself, and names none of them. A dataset has the chunks, the filters and the
  // unlimited dimensions of the first file that has it in chunks. Stored chunks that are chunks of the whole, too, are copied as
  // they are, also those of filters that nothing here can decode; other values are decoded and encoded. What no file has written
  // stays so. The sources may be on servers, and netCDF-3.
  bool copies = false;
  unsigned threads = 0;                             // that decode and encode; 0: as many as there are processors
  std::uint64_t memory = std::uint64_t{512} << 20;  // limit for values in progress
  bool overwrite = false;                           // replace a target that is an HDF5 file
  bool fsync = false;                               // flush the file to the disk before it gets its name
  // The new file has aggregation variables of CF-1.13 in place of virtual datasets. Coordinates and their bounds keep their
  // values in it, and so does a dataset of at most 256 MiB that cannot be an aggregation variable, with a note: one with a part
  // that is in no file, with values that are not numbers, or with a dimension that has no name. The sources may be netCDF-3.
  bool cf_aggregation = false;
  // With `cf_aggregation`: the URLs by which the new file names the sources.
  std::optional<source_base> base = {};
  // netCDF-3 files may be among the sources: HDF5 itself, and so other programs, cannot read their values through the new file.
  bool netcdf3 = false;
  // Files on servers may be among the sources: no other program reads their values through the new file, and convert() does if
  // its `external` names each.
  bool servers = false;
  remote_access remote = {};  // how files on servers are reached
  bool lock = true;           // false: also read a file that another process has open for writing
  std::function<void(const std::string& file, std::uint64_t done, std::uint64_t files)> progress = {};  // called repeatedly
  // With `copies`: then called repeatedly, with a dataset's path.
  std::function<void(const std::string& path, std::uint64_t done, std::uint64_t bytes)> copied = {};
};

// Where a file lies along one dimension.
struct combined_range {
  std::string dimension;    // path of its coordinate variable: "/time"; of a new one "/" and its name
  std::uint64_t first = 0;  // its first index
  std::uint64_t count = 0;  // its length
};

// One of the sources.
struct combined_file {
  std::string file;                   // its name
  std::uint64_t bytes = 0;            // its size
  std::string version = {};           // another one if it was changed: its size, and its time or the server's ETag
  std::vector<combined_range> place;  // one for each dimension that it has
};

// What became of the sources.
struct combine_report {
  std::vector<combined_file> files;  // in the order of the options
  std::uint64_t bytes = 0;           // size of the new file
  // With `copies`: chunks of joined datasets that were copied as they are stored, and others, which were encoded.
  std::uint64_t copied_chunks = 0, encoded_chunks = 0;
  // Sentences: parts that are in no file, datasets that some files do not have, or that differ.
  std::vector<std::string> notes;
};

// Throws `error`: wrong options, a file that cannot be read, or files that do not belong together. No target is left then.
combine_report combine(const combine_options& options);

}  // namespace zarrbits

#endif
