// SPDX-License-Identifier: BSL-1.0
//
// HDF5 files to Zarr v3 stores, with an account of every object.
//
//   zarrbits::convert_result r = zarrbits::convert({.source = "in.h5", .store = "out.zarr"});
//   if (r.lost()) std::cerr << r.report_json();   // what was skipped, and why
//
// Needs libhdf5 at link time, the header does not. It keeps process-wide state: call convert() from one thread at a time.
//
#ifndef ZARRBITS_CONVERT_HPP
#define ZARRBITS_CONVERT_HPP

#include <zarrbits/compression.hpp>
#include <zarrbits/source_name.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits {

// The whole conversion failed, and no store is left. what() is a sentence: what, where, what to do. It names members of
// convert_options in backquotes.
struct convert_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What the conversion did with an object, cheapest first. Of a dataset: the costliest way that any of its chunks took.
enum class outcome {
  raw,        // the stored bytes were copied
  rewrapped,  // the payload was kept, its framing or checksum changed
  recoded,    // decoded and encoded again
  mapped,     // no exact counterpart in Zarr: stored in another layout, or as an attribute
  skipped,    // not in the store; `reason` says why
};
// Its name, as in the report.
const char* to_string(outcome o) noexcept;

// What the Zarr readers of a community expect beyond HDF5's own terms; see docs/conventions.md.
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
// The links of a source.
struct link_counts {
  std::uint64_t copied = 0;  // the target was copied to the link's place
  std::uint64_t kept = 0;    // only a note
  std::uint64_t lost = 0;    // only a note, because the target was to be copied and cannot be opened
};

// The chunks of a dataset, by what the conversion did with them.
struct chunk_counts {
  std::uint64_t raw = 0;        // as outcome::raw
  std::uint64_t rewrapped = 0;  // as outcome::rewrapped
  std::uint64_t recoded = 0;    // as outcome::recoded
  std::uint64_t absent = 0;     // never written in the source, therefore not in the store
  std::uint64_t lost = 0;       // unreadable in the source
};

// A group, dataset, named datatype, attribute, further link, or user block (the bytes before the HDF5 superblock).
struct converted_object {
  std::string path;                                       // in the source; bytes that are not UTF-8 as %XX
  std::string kind;                                       // "group", "dataset", "datatype", "attribute", "link", "user_block"
  std::string attribute;                                  // its name, if kind is "attribute"
  std::string link;                                       // "hard", "soft", "external", "user", "broken", if kind is "link"
  std::string target;                                     // target of the link
  zarrbits::outcome outcome = zarrbits::outcome::mapped;  // what the conversion did with it
  bool lossy = false;                                     // something cannot be rebuilt from the store
  bool selected = true;                                 // false: skipped because it was not selected, with all below it; no loss
  std::string reason;                                   // why skipped, lossy or unusual
  std::string zarr_path;                                // where it is in the store, if not at `path`
  std::string zarr_name;                                // the attribute's name in the store, if it differs
  chunk_counts chunks;                                  // chunks of a dataset
  std::vector<std::vector<std::uint64_t>> lost_chunks;  // grid coordinates of chunks that were lost
  std::uint64_t source_bytes = 0;                       // stored size of a dataset in the source
  std::uint64_t store_bytes = 0;                        // size of its chunks in the store
};

// How far the conversion is.
struct convert_progress {
  const std::string& path;     // the current object
  std::uint64_t objects_done;  // objects done, out of `objects`
  std::uint64_t objects;       // objects in the source
  std::uint64_t bytes_done;    // bytes done, out of `bytes`
  std::uint64_t bytes;         // stored bytes of all datasets of the source; 0 if not measured first
};

struct convert_result;

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

// The size of a shard: a limit in bytes before compression, or a shape. With neither there are no shards.
struct shard_size {
  std::uint64_t bytes = 0;                // 0: no limit is set
  std::vector<std::uint64_t> shape = {};  // elements in each dimension, for datasets of this rank; rounded up to whole chunks
};

// Several files as one store; see docs/many.md.
struct concatenation {
  // The dimension along which datasets are joined: its name, or an axis of the datasets that match a pattern of paths: "time",
  // "/images:0". Datasets without it must be equal in all files.
  std::string dimension = {};
  std::vector<std::string> sources = {};  // the files after convert_options::source
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

constexpr std::uint64_t least_memory = std::uint64_t{16} << 20;  // the least value of convert_options::memory
constexpr std::uint64_t usual_inline_bytes = 1024;               // the usual value of convert_options::references

// What to convert, where to, and how.
struct convert_options {
  std::string source = {};  // an HDF5 file, or one of its objects, which becomes the root of the store: "in.h5:/a/b"
  std::optional<concatenation> concat = {};  // not set: only `source`
  std::string store = {};     // a new directory, "x.zip", "s3://bucket/prefix" or, with `references`, "x.json" or "x.parquet"
  std::string endpoint = {};  // URL of an S3 server; "": the environment decides (AWS_ENDPOINT_URL), else Amazon's
  bool overwrite = false;     // replace an existing Zarr store
  // The store has references in kerchunk's format, "x.json" or "x.parquet": chunks that need no change stay in the source. Other
  // objects of at most this many bytes, up to memory / 4, are among the references, others in "x.json.data". Not set: a copy.
  std::optional<std::uint64_t> references = {};
  // Repeat the metadata of all nodes in the root's: one request opens a remote store. Not set: as the convention's readers expect
  // it, which are those of netCDF and AnnData.
  std::optional<bool> consolidate = {};
  // Patterns of paths in the source. Objects that are included (none given: all) and not excluded are converted, with the groups
  // above them. `*` any characters of a name, `?` one, `[a-z]` one of these, `**` across names; without a leading "/" they begin
  // in any group; a group stands for all below it. A pattern that matches nothing is an error.
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};  // patterns of objects to leave out; wins over `include`
  // Other files of the source (external storage, sources of virtual datasets) must be regular files in its folder or below, or
  // in these folders; "all" allows any file. Other files are not read, but reported.
  std::vector<std::string> external = {};
  // Lock the source (flock) as HDF5's own readers do: this keeps writers away, and fails while a writer has the file open. false:
  // no lock, even if somebody may write; a change of the file's size or time still ends the conversion.
  bool lock = true;
  bool keep_going = false;       // leave a damaged chunk out and report it, instead of failing
  bool allow_expansion = false;  // allow chunks to expand more than 1,000 times, beyond `memory`, when they are decoded
  std::optional<zarrbits::profile> profile = {};  // not set: see effective_profile()
  std::optional<compression> compress = {};       // with recode; not set: as portable does for compressed sources
  std::vector<std::uint64_t> chunk = {};  // with recode: another chunk shape, for datasets of this rank; clipped to the extents
  shard_size shard = {};                  // many chunks in one object, by Zarr's codec sharding_indexed
  zarrbits::checksum checksum = zarrbits::checksum::none;  // of every array
  array_codec codec = array_codec::automatic;              // of every array
  std::optional<zarrbits::convention> convention = {};     // not set: the one that the file declares
  // Not set: targets in other files are copied. Targets in the source are copied if readers of its convention see them, as those
  // of netCDF, AnnData and NeXus do; not with convention::none (HDF5's own terms). Nothing is copied if files are joined. An
  // object with several links is copied for each link. Other files are read under the rules of `external`.
  std::optional<link_policy> links = {};
  // With packbits: bits to keep of each integer. A dataset with a value that does not fit is stored as bytes; so each dataset is
  // one piece of work, which processes do not divide.
  std::optional<unsigned> bits = {};
  // Bits for the datasets that a pattern matches; a value that does not fit is an error.
  struct pattern_bits {
    std::string pattern;     // as in `include`; a pattern that matches nothing is an error
    unsigned first_bit = 0;  // the lowest bit that is kept
    unsigned last_bit = 0;   // the highest bit, inclusive; of narrower integers, their highest
  };
  std::vector<pattern_bits> bits_of = {};  // win over `bits`; if several patterns match, the last one counts
  // The profile, or the one that the other options imply.
  zarrbits::profile effective_profile() const {
    const auto usual = references ? zarrbits::profile::native : zarrbits::profile::portable;
    return profile ? *profile : compress || !chunk.empty() ? zarrbits::profile::recode : usual;
  }
  unsigned threads = 0;  // threads that make chunks; 0: one for each available processor
  // Processes that read the metadata of many files (`concat`); 0: one for each available processor. With more than one the
  // calling process forks: for programs that have no other threads.
  unsigned processes = 1;
  std::uint64_t memory = std::uint64_t{512} << 20;  // bytes for the chunks in work; a larger chunk is made alone
  bool sync = false;                                // flush everything to disk before it counts as done
  // An unfinished store that the same options began is continued. With `resume` options that are not set are those that the
  // store was begun with, as they are with `share` and in finalize() (not `external`). Other options are an error. Finished work
  // stays in a store of many files if a run fails, and the error says so.
  bool resume = false;
  // The caller's command, which an unfinished store keeps: for the error if a store was begun with other options.
  std::vector<std::string> command = {};
  // Shows such a command in a sentence.
  std::function<std::string(const std::vector<std::string>&)> show_command = {};
  // Do only this share of the work, without metadata; finalize() writes it after all shares. Several processes may work at once.
  struct share_type {
    unsigned index = 0;  // index, from 0
    unsigned count = 1;  // number of shares
  };
  std::optional<share_type> share = {};                        // not set: all of the work
  std::function<void(const convert_progress&)> progress = {};  // called by any thread, one at a time
  // Called before the first chunk is made: a sentence on a limit or promise that this run cannot keep.
  std::function<void(const std::string&)> warning = {};
  // Called with a sentence on what is not to be expected, but no fault: an unfinished store that goes on.
  std::function<void(const std::string&)> note = {};
  // Sentences name options in backquotes, as in "replace it with `overwrite`". Each reason passes through this function on its
  // way into the store and the report, so that the caller can reword options. (Exceptions and warnings are the caller's anyway.)
  std::function<std::string(const std::string& reason)> wording = {};
  // Called before the last step, which completes the store; an exception from it ends the conversion. The place to write reports.
  std::function<void(const convert_result&)> before_done = {};
  std::string run = {};        // a text unique to this run: tells what this run leaves, if it is killed, from what others leave
  bool measure_first = false;  // add up the stored bytes first, for a progress bar
};

// One file of several.
struct joined_source {
  std::string file;                // its name
  std::uint64_t bytes = 0;         // its size; 0 if it was not opened
  std::uint64_t first = 0;         // its first index along the dimension
  std::uint64_t count = 0;         // its length along the dimension
  bool left_out = false;           // it cannot be read; only with convert_options::keep_going
  std::vector<std::string> notes;  // sentences: how this file differs from the joined store
};

// The result of a conversion.
struct convert_result {
  std::string source;                                            // as in the options
  std::string store;                                             // as in the options
  zarrbits::profile profile = zarrbits::profile::portable;       // convert_options::effective_profile()
  zarrbits::convention convention = zarrbits::convention::none;  // the one that was asked for, or that the file declares
  link_counts links;                                             // links other than the first one to an object
  std::vector<converted_object> objects;                         // everything that the source has
  std::uint64_t source_bytes = 0;        // size of the source, of all files that were read for it with `concat`
  std::uint64_t store_objects = 0;       // number of files of the store; of a share or an append: of those that it wrote
  std::uint64_t store_bytes = 0;         // bytes of these files; of references, before finish(), of what is not in the source
  std::uint64_t referred_objects = 0;    // with convert_options::references: number of objects that stay in the source
  std::uint64_t referred_bytes = 0;      // bytes of these
  std::string started;                   // when, in UTC: "2026-01-31T12:34:56Z"
  double seconds = 0;                    // elapsed time
  std::vector<std::string> other_files;  // files that were read besides the source
  // A file that was not read, and why.
  struct refused_file {
    std::string file;    // its name
    std::string reason;  // a sentence
  };
  std::vector<refused_file> refused_files;  // files that were not read
  std::vector<joined_source> sources;       // with convert_options::concat, in order; otherwise empty

  // True if something was skipped, or cannot be rebuilt from the store.
  bool lost() const noexcept;
  // The report as strict JSON; docs/converter.md lists its keys. A program can add its exit status.
  std::string report_json(std::optional<int> exit_status = {}) const;
};

// The file that a store "x.zip" is written to until it is complete.
std::string unfinished_zip(const std::string& store);

// The first step of a program that reads untrusted files and writes to S3. Moves AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN out of the environment into memory apart from the heap; child processes do not inherit them either.
void take_s3_keys();

// For a program that was told to end: from now on, the first request to an S3 server that gets no answer for a second is the last
// one, and all later ones fail.
void hurry_s3() noexcept;

// Removes what a killed conversion left: a store that is marked as unfinished and that nobody writes to. With `run`, only a store
// that the conversion with this convert_options::run began. True if there was one.
bool remove_unfinished_store(const std::string& store, const std::string& endpoint = {}, const std::string& run = {}) noexcept;

// Removes what a run that was killed as it ended left in a whole store (is_whole_store()): a lock that nobody holds, its folder.
void tidy_whole_store(const std::string& store) noexcept;

// Throws convert_error if an option, or a combination, makes no sense. convert() calls it first.
void check_options(const convert_options& options);

// Converts. Throws convert_error. An object that cannot be converted does not stop the others; the result has it.
[[nodiscard]] convert_result convert(const convert_options& options);

// What convert() would do with one dataset, as far as this is known without reading its values.
struct planned_dataset {
  std::string path;  // in the source
  // The costliest way that its chunks are expected to take; single chunks, damaged or with a filter left out, may take another.
  zarrbits::outcome outcome = zarrbits::outcome::mapped;
  std::string how;                 // this way in words, or the reason why it is skipped
  std::string codecs;              // codecs of its array as JSON; "" if it becomes a group
  std::uint64_t objects = 0;       // upper limit of the files or objects to write: stored chunks, and metadata
  std::uint64_t source_bytes = 0;  // stored bytes in the source
  // Bytes to write for its chunks: as in the source for copied chunks, else at most their size without compression.
  std::uint64_t store_bytes = 0;
  // A range of shards, or of chunks if there are no shards, in C order of their grid.
  struct unit {
    std::uint64_t first = 0;  // index of the first one
    std::uint64_t count = 0;  // number of them
    std::uint64_t bytes = 0;  // approximate size in the source
  };
  std::vector<unit> units;  // the units that processes divide among themselves
};
// What convert() would do.
struct convert_plan {
  std::vector<planned_dataset> datasets;                         // all selected datasets
  std::uint64_t groups = 0;                                      // number of groups to write
  zarrbits::convention convention = zarrbits::convention::none;  // as convert_result has it
  link_counts links;                                             // as convert_result has them
  std::vector<std::string> other_files;                          // as convert_result has them
  std::vector<convert_result::refused_file> refused_files;       // as convert_result has them
  std::vector<joined_source> sources;                            // as convert_result has them
  std::string json() const;                                      // strict JSON
};
// Reads only metadata, and writes nothing. `store` may be empty. Throws convert_error.
[[nodiscard]] convert_plan plan(const convert_options& options);

// One of several processes that make the chunks of a store together. The units may be handed out in any order. When all are made,
// finalize() writes the metadata.
//
//   begin_store(options);                     // once, before the others join
//   convert_worker worker(options);           // in each process
//   for (const auto& u : worker.missing()) worker.make(u);
//
class convert_worker {
 public:
  // Some chunks of a dataset.
  struct unit {
    std::size_t dataset = 0;   // index of the dataset's object in the source
    std::uint64_t number = 0;  // number of the unit within its dataset, from 0
    std::string path;          // path of the dataset
  };
  // Opens the source and joins the store. options.share identifies the process. Throws convert_error.
  explicit convert_worker(const convert_options& options);
  ~convert_worker();
  convert_worker(convert_worker&& other) noexcept;             // `other` can only be destroyed afterwards
  convert_worker& operator=(convert_worker&& other) noexcept;  // the same

  // The units that nobody has made yet. Opens every dataset.
  std::vector<unit> missing();
  // Makes one unit. Throws convert_error; other units can still be made afterwards.
  void make(const unit& u);

 private:
  struct state;
  std::unique_ptr<state> state_;
};
// Refuses an existing store or, with `overwrite`, removes it; does nothing with `resume`. Throws convert_error.
void begin_store(const convert_options& options);

// Writes the metadata of a store whose chunks were made in shares. Throws convert_error if chunks are missing, and says which
// shares.
[[nodiscard]] convert_result finalize(const convert_options& options);

}  // namespace zarrbits

#endif
