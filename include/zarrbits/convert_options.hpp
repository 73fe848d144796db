// SPDX-License-Identifier: BSL-1.0
//
// What to convert, where to, and how: the options of convert(), plan() and finalize() of <zarrbits/convert.hpp>.
//
//   zarrbits::convert_options options{.source = {.name = "in.h5"}, .target = {.name = "out.zarr"}};
//   options.encoding.profile = zarrbits::profile::native;
//
#ifndef ZARRBITS_CONVERT_OPTIONS_HPP
#define ZARRBITS_CONVERT_OPTIONS_HPP

#include <zarrbits/compression.hpp>
#include <zarrbits/remote_access.hpp>
#include <zarrbits/source_name.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits {

struct convert_progress;
struct convert_result;

// What the Zarr readers of a community expect beyond HDF5's own terms; see docs/reference/conventions.md.
enum class convention {
  none,      // objects, names and attributes as HDF5 has them
  netcdf,    // netCDF-4, as xarray reads it
  anndata,   // AnnData and MuData, as anndata reads them
  nwb,       // Neurodata Without Borders, as hdmf-zarr reads it
  nexus,     // NeXus
  matlab,    // MATLAB 7.3
  pytables,  // PyTables
};
// Its name, as in the report: "netcdf".
const char* to_string(convention c) noexcept;

// What to do with links other than the first one to an object (soft links, further hard links, links into other files): Zarr has
// none.
enum class link_policy {
  keep,    // keep them as notes, under "zarrbits"
  copy,    // copy the target to the link's place, with all below it; the note stays
  refuse,  // do not convert a file that has one
};
// Which chunks are copied, and which codecs are used.
enum class profile {
  portable,  // codecs that all Zarr readers have
  native,    // stored chunks are copied if numcodecs has the filters as codecs ("numcodecs.shuffle", ...); zarr-python and zarrs
             // read those
  recode,    // every chunk is encoded again
};
// Its name, as in the report.
const char* to_string(profile p) noexcept;

// The codec that turns numbers into bytes.
enum class array_codec {
  automatic,  // `bytes`, but chunks of our packbits filter are copied unchanged, as `packbits`
  bytes,      // packbits chunks are decoded too, for readers without packbits, such as zarr-python
  packbits,   // bool and integers are packed
};

// The last codec of every array.
enum class checksum {
  none,    // nothing
  crc32c,  // 4 bytes that reveal damage of a chunk
};

// Whose metadata a store has. Chunks are the same for readers of both.
enum class zarr_format {
  v2,    // only those of Zarr v2; arrays that it cannot have are skipped
  v3,    // only those of Zarr v3
  both,  // of references: those of Zarr v3 and, of each array that it can have, those of Zarr v2
};

// The size of a shard: a limit in bytes before compression, or a shape. With neither there are no shards.
struct shard_size {
  std::uint64_t bytes = 0;                // limit; 0: not set
  std::vector<std::uint64_t> shape = {};  // elements in each dimension, for datasets of this rank; rounded up to whole chunks
};

// Where the chunks of an array end that is joined from several files.
enum class grid_type {
  regular,      // all chunks have one shape: after a file that ends within a chunk, the chunks of the next ones are made again
  rectilinear,  // where it copies more: chunks end where those of the files do, and only the last one of each file is made again.
                // Fewer readers have Zarr's rectilinear chunk grid; see docs/guide/rectilinear.md
};
// Its name, as in the plan: "regular".
const char* to_string(grid_type g) noexcept;

// Several files, or several Zarr stores, as one store; see docs/guide/many-files.md.
struct concatenation {
  // The dimension along which datasets are joined: its name, or an axis of the datasets that match a pattern of paths: "time",
  // "/images:0". Datasets without it must be equal in all files.
  std::string dimension = {};
  std::vector<std::string> sources = {};  // the files after convert_source::name
  // The order of the files.
  enum class order_type {
    given,  // as given
    name,   // by name, with digits compared as numbers: d9.nc before d10.nc
    value,  // by the first value of the dimension's coordinate variable
  };
  order_type order = order_type::given;  // order of the files
  // What to do with a dataset without the dimension that is not equal in all files.
  enum class different_type {
    refuse,  // fail with a sentence
    first,   // use that of the first file
    skip,    // leave it out
  };
  different_type different = different_type::refuse;  // for datasets without the dimension
  // Each file becomes one step of a new dimension of this name. It is the first dimension of all datasets except dimension
  // scales, which must be equal in all files.
  bool is_new = false;
  // Append these files to an existing store: its arrays stay as they are, and take the new values in their own terms (units,
  // scale). Files that the store already has are skipped.
  bool append = false;
  bool allow_overlap = false;  // coordinate values of the dimension need not stay monotonic across files
};

constexpr std::uint64_t min_memory = std::uint64_t{16} << 20;  // the least value of convert_execution::memory

// What is converted.
struct convert_source {
  // An HDF5 file, or a Zarr store (a folder, "x.zip", references "x.json", "s3://bucket/x.zarr"); or one of its objects, which
  // becomes the root of the store: "in.h5:/a/b".
  std::string name = {};
  std::optional<concatenation> concat = {};  // not set: only `name`
  // Other files of the source (external storage, sources of virtual datasets) must be regular files in its folder or below, or
  // in these folders; "all" allows any file. Other files are not read, but reported.
  std::vector<std::string> external = {};
  // Lock the source (flock) as HDF5's own readers do: this keeps writers away, and fails while a writer has the file open. false:
  // no lock, even if another process may write; a change of the file's size or time still ends the conversion.
  bool lock = true;
  bool is_temporary = false;  // it is removed afterwards: its own chunks are not referred to, but copied
};

// What to do with a Zarr store that has the name of the new one.
enum class existing_store {
  refuse,     // it is an error
  overwrite,  // it is replaced
  // An unfinished store that the same options began is continued. Options that are not set are those that the store was begun
  // with, as they are with `partition` and in finalize() (not `external`). Other options are an error.
  resume,
};

// What is written.
struct convert_target {
  std::string name = {};  // a new directory, "x.zip", "s3://bucket/prefix" or, with `references`, "x.json" or "x.parquet"
  existing_store existing = existing_store::refuse;  // what becomes of a store that has this name
  // The store has references in kerchunk's format, "x.json" or "x.parquet": chunks that need no change stay in the source.
  bool references = false;
  // With `references`: other objects of at most this many bytes, up to memory / 4, are among the references, others in
  // "x.json.data".
  std::uint64_t inline_bytes = 1024;
  std::optional<source_base> base = {};  // with `references`; not set: absolute local paths
  // Not set: v3 or, of `references`, both, or what the references have that are appended to. In a copy of Zarr v2, chunks that
  // were never written are written, unless the attribute `_FillValue` is their value: xarray takes no other fill value.
  std::optional<zarrbits::zarr_format> zarr_format = {};
  std::optional<zarrbits::convention> convention = {};  // not set: the one that the source declares
  // Repeat the metadata of all nodes in the root's: one request opens a remote store. Not set: as the convention's readers expect
  // it, which are those of netCDF and AnnData.
  std::optional<bool> consolidate = {};
  bool is_v2_copy() const { return !references && zarr_format == zarrbits::zarr_format::v2; }
};

// Which objects of the source are converted.
struct convert_selection {
  // Patterns of paths in the source. Objects that are included (none given: all) and not excluded are converted, with the groups
  // above them. `*` any characters of a name, `?` one, `[a-z]` one of these, `**` across names; without a leading "/" they begin
  // in any group; a group stands for all below it. A pattern that matches nothing is an error.
  std::vector<std::string> include = {};
  // With `include`: also the coordinate variables of the included datasets: dimension scales, and those that CF's attributes
  // `coordinates`, `bounds` and `grid_mapping` name. `exclude` wins. Without it, a note names those that are left out.
  bool with_coordinates = false;
  std::vector<std::string> exclude = {};  // patterns of objects to leave out; wins over `include`
  // Not set: targets in other files are copied. Targets in the source are copied if readers of its convention see them, as those
  // of netCDF, AnnData and NeXus do; not with convention::none (HDF5's own names). Nothing is copied if files are joined. An
  // object with several links is copied for each link. Other files are read under the rules of `external`.
  std::optional<link_policy> links = {};
};

// The lengths of chunks along dimensions, by their names; dimensions that are not named, and other arrays, stay as they are.
// For one array, entries that name it win over those for all arrays, and of each kind the last one counts.
struct dimension_chunks {
  std::string pattern = {};  // datasets, as in `include`; empty: all that have one of the dimensions
  struct length_along {
    std::string dimension;     // its name in the store; one that no array has is an error
    std::uint64_t length = 0;  // elements; 0: the whole dimension
  };
  std::vector<length_along> lengths = {};
};

// Bits for the datasets that a pattern matches; a value that does not fit is an error.
struct pattern_bits {
  std::string pattern;     // as in `include`; a pattern that matches nothing is an error
  unsigned first_bit = 0;  // the lowest bit that is kept
  unsigned last_bit = 0;   // the highest bit, inclusive; of narrower integers, their highest
};

// The form of the arrays.
struct convert_encoding {
  std::optional<zarrbits::profile> profile = {};  // not set: see convert_options::effective_profile()
  std::optional<compression> compress = {};       // with recode; not set: as portable does for compressed sources
  std::vector<std::uint64_t> chunk = {};  // with recode: another chunk shape, for datasets of this rank; clipped to the extents
  std::vector<dimension_chunks> chunk_along = {};  // also without recode; wins over `chunk`
  bool write_empty_chunks = false;      // with other chunks: also those with the fill value alone, which readers take for them
  grid_type grid = grid_type::regular;  // of arrays that `concat` joins
  // Many chunks in one object, by Zarr's codec sharding_indexed. Not set: no shards, or those that a Zarr store has as the
  // source.
  std::optional<shard_size> shard = {};
  zarrbits::checksum checksum = zarrbits::checksum::none;  // of every array
  array_codec codec = array_codec::automatic;              // of every array
  // With packbits: bits to keep of each integer. A dataset with a value that does not fit is stored as bytes; so each dataset is
  // one piece of work, which processes do not divide.
  std::optional<unsigned> bits = {};
  std::vector<pattern_bits> bits_of = {};  // win over `bits`; if several patterns match, the last one counts
  bool sets_chunks() const { return !chunk.empty() || !chunk_along.empty(); }
  bool makes_shards() const { return shard && (shard->bytes > 0 || !shard->shape.empty()); }
};

// One of several equal parts of the work.
struct partition {
  unsigned index = 0;  // index, from 0
  unsigned count = 1;  // number of parts
};

// How the work is done.
struct convert_execution {
  unsigned threads = 0;  // threads that make chunks; 0: one for each available processor
  // Processes that read the metadata of many files (`concat`); 0: one for each available processor. With more than one the
  // calling process forks: for programs that have no other threads.
  unsigned processes = 1;
  std::uint64_t memory = std::uint64_t{512} << 20;  // bytes for the chunks in work; a larger chunk is made alone
  bool fsync = false;                               // flush everything to disk before it counts as done
  // A Zarr store that gets other chunks, where its values do not fit in `memory`: the folder for a file with them. Not set: that
  // of the store, or that of temporary files.
  std::string scratch = {};
  bool keep_going = false;       // leave a damaged chunk out and report it, instead of failing
  bool allow_expansion = false;  // allow chunks to expand more than 1,000 times, beyond `memory`, when they are decoded
  // Do only this part of the work, without metadata; finalize() writes it after all parts. Several processes may work at once.
  // Not set: all of the work.
  std::optional<zarrbits::partition> partition = {};
  std::function<void(const convert_progress&)> progress = {};  // called by any thread, one at a time
  bool measure_first = false;                                  // with `progress`: add up the stored bytes before the first call
  // Called before the first chunk is made: a sentence on a limit or promise that this run cannot keep.
  std::function<void(const std::string&)> warning = {};
  // Called with a sentence on something that is unexpected but not wrong: an unfinished store is continued.
  std::function<void(const std::string&)> note = {};
  // Called before the last step, which completes the store; an exception from it ends the conversion. The place to write reports.
  std::function<void(const convert_result&)> before_done = {};
  // Sentences name options in backquotes, as in "replace it with `overwrite`". Each reason passes through this function on its
  // way into the store and the report, so that a program can name its own options.
  std::function<std::string(const std::string& reason)> wording = {};
  // The command line of the program, without secrets: an unfinished store keeps it, for the error if other options continue it.
  std::vector<std::string> command = {};
  // Such a command in a sentence, its own or one that a store keeps. Not set: sentences have none.
  std::function<std::string(const std::vector<std::string>& command)> show_command = {};
  // A text unique to this run: distinguishes what this run leaves, if it is killed, from what others leave.
  std::string run = {};
};

// What to convert, where to, and how.
struct convert_options {
  convert_source source = {};
  convert_target target = {};
  remote_access remote = {};  // how sources and stores on servers are reached
  convert_selection selection = {};
  convert_encoding encoding = {};
  convert_execution execution = {};
  // The profile, or the one that the other options imply.
  zarrbits::profile effective_profile() const {
    const auto usual = target.references ? zarrbits::profile::native : zarrbits::profile::portable;
    return encoding.profile                               ? *encoding.profile
           : encoding.compress || !encoding.chunk.empty() ? zarrbits::profile::recode
                                                          : usual;
  }
};

}  // namespace zarrbits

#endif
