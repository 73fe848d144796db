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

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace zarrbits {

// The conversion failed as a whole, and no store is left. what() is a sentence: what, where, what to do. Members of
// convert_options stand in it in backquotes.
struct convert_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What became of an object, the cheapest first. Of a dataset: the costliest way that one of its chunks needed.
enum class outcome {
  raw,        // the stored bytes were copied
  rewrapped,  // the payload was kept, its framing or checksum changed
  recoded,    // decoded and encoded again
  mapped,     // no exact counterpart in Zarr: another layout, or an attribute
  skipped,    // not in the store; `reason` says why
};
// Its name, as in the report.
const char* to_string(outcome o) noexcept;

// What the Zarr readers of a community expect that HDF5's own terms do not give them; docs/conventions.md.
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

// What becomes of links that are not the first to their object (soft, further hard, into other files): Zarr has none.
enum class link_policy {
  keep,    // notes, under "zarrbits"
  copy,    // what they lead to stands at their place, with all below it; the note stays
  refuse,  // no conversion of a file that has one
};
// The links of a source.
struct link_counts {
  std::uint64_t copied = 0;  // what they lead to stands at their place
  std::uint64_t kept = 0;    // notes alone
  std::uint64_t lost = 0;    // notes, for what they lead to was to be copied and cannot be opened
};

// The chunks of a dataset, by what became of them.
struct chunk_counts {
  std::uint64_t raw = 0;        // as outcome::raw
  std::uint64_t rewrapped = 0;  // as outcome::rewrapped
  std::uint64_t recoded = 0;    // as outcome::recoded
  std::uint64_t absent = 0;     // never written in the source, and so left out of the store
  std::uint64_t lost = 0;       // unreadable in the source
};

// A group, dataset, named datatype, attribute, further link, or the bytes before the HDF5 file proper.
struct converted_object {
  std::string path;                                       // in the source; bytes that are not UTF-8 as %XX
  std::string kind;                                       // "group", "dataset", "datatype", "attribute", "link", "user_block"
  std::string attribute;                                  // name, where kind is "attribute"
  std::string link;                                       // "hard", "soft", "external", "user", "broken", where kind is "link"
  std::string target;                                     // of the link
  zarrbits::outcome outcome = zarrbits::outcome::mapped;  // what became of it
  bool lossy = false;                                     // something cannot be rebuilt from the store
  bool selected = true;                                 // false: skipped because it was not asked for, with all below it; no loss
  std::string reason;                                   // why skipped, lossy or unusual
  std::string zarr_path;                                // where it is in the store, if not at `path`
  std::string zarr_name;                                // the attribute's name in the store, if another
  chunk_counts chunks;                                  // of a dataset
  std::vector<std::vector<std::uint64_t>> lost_chunks;  // grid coordinates
  std::uint64_t source_bytes = 0;                       // stored size of a dataset in the source
  std::uint64_t store_bytes = 0;                        // and of its chunks in the store
};

// How far a conversion is.
struct convert_progress {
  const std::string& path;     // the object at hand
  std::uint64_t objects_done;  // of `objects`
  std::uint64_t objects;       // in the source
  std::uint64_t bytes_done;    // of `bytes`
  std::uint64_t bytes;         // stored bytes of the source's datasets; 0 where they were not added up first
};

struct convert_result;

// Which chunks are copied, and under which codecs.
enum class profile {
  portable,  // codecs that all Zarr readers have
  native,  // stored chunks are copied where numcodecs has the filters as codecs ("numcodecs.shuffle", ...); zarr-python and zarrs
           // read those
  recode,  // all is encoded anew
};
// Its name, as in the report.
const char* to_string(profile p) noexcept;

// A codec that compresses chunks.
enum class compressor {
  none,   // chunks are not compressed
  gzip,   // levels 1 to 9, 6 is the usual one
  zstd,   // levels 1 to 22, 3 is the usual one
  blosc,  // levels 1 to 9, 5 is the usual one
};
// What blosc compresses with.
enum class blosc_compressor {
  blosclz,  // in chunks that are copied alone: many readers are built without it
  lz4,      // fast
  lz4hc,    // slower, and smaller
  snappy,   // as blosclz
  zlib,     // as gzip
  zstd,     // the smallest
};
// How blosc orders the bytes of numbers before it compresses them.
enum class blosc_shuffle {
  none,   // as they are
  bytes,  // first bytes of all numbers, second bytes, ...
  bits,   // first bits of all numbers, second bits, ...
};
// How chunks are compressed that are encoded anew.
struct compression {
  compressor kind = compressor::none;                // the codec
  int level = 0;                                     // 0: the usual one
  blosc_compressor inside = blosc_compressor::zstd;  // with blosc
  blosc_shuffle shuffle = blosc_shuffle::bytes;      // with blosc
};

// The codec that makes bytes of numbers.
enum class array_codec {
  automatic,  // `bytes`, but chunks of our packbits filter are copied as they are, as `packbits`
  bytes,      // these are decoded, too, for readers without packbits, such as zarr-python
  packbits,   // bool and integers are packed
};

// What the codecs of every array end with.
enum class checksum {
  none,    // nothing
  crc32c,  // 4 bytes that show damage of a chunk
};

// How large a shard is: of at most so many bytes before compression, or of a shape; neither: no shards.
struct shard_size {
  std::uint64_t bytes = 0;  // 0: none are asked for
  std::vector<std::uint64_t> shape =
      {};  // elements in each dimension, for datasets of this rank; made larger to hold whole chunks
};

// Several files as one store: docs/many.md.
struct concatenation {
  // The dimension along which datasets are joined, by its name, or an axis of the datasets that a pattern of paths matches:
  // "time", "/images:0". Datasets without it have to be equal in all files.
  std::string dimension = {};
  std::vector<std::string> sources = {};  // that follow convert_options::source
  // How the files follow each other.
  enum class order_type {
    given,  // as they are given
    name,   // by name, numbers in it as numbers: d9.nc before d10.nc
    value,  // by the first value of the dimension's variable
  };
  order_type order = order_type::given;  // of the files
  // What becomes of a dataset without the dimension that is not equal in all files.
  enum class different_type {
    refuse,  // the conversion ends with a sentence
    first,   // the first file's stands for all
    skip,    // it is left out
  };
  different_type different = different_type::refuse;  // for datasets without the dimension
  // Each file is one step of a new dimension of this name, the first one of all datasets but of the dimension scales, which have
  // to be equal in all files.
  bool is_new = false;
  // The store is there, and grows by these files: its arrays stay as they are, and take the new values in their terms. Files that
  // are in it already are passed over.
  bool append = false;
  bool allow_overlap = false;  // the values of the dimension's variable need not go on in one direction
};

// What to convert, where to, and how.
struct convert_options {
  std::string source = {};  // an HDF5 file, or one of its objects, which becomes the root of the store: "in.h5:/a/b"
  std::optional<concatenation> concat = {};  // not set: `source` alone
  std::string store = {};     // a new directory, a file "x.zip" or, with `references`, "x.json", or "s3://bucket/prefix"
  std::string endpoint = {};  // URL of an S3 server; "" asks the environment (AWS_ENDPOINT_URL), and is Amazon's otherwise
  bool overwrite = false;     // replace a Zarr store that is there
  // The store is a file "x.json" of references in kerchunk's format: chunks that are in the source as the store has them stay
  // there. Metadata and other objects of at most so many bytes are in it, larger ones in "x.json.data". Not set: a copy.
  std::optional<std::uint64_t> references = {};
  bool consolidate = false;  // the metadata of all nodes once more in the root's, for readers of remote stores
  // Patterns of paths in the source: what is included (nothing given: everything) and not excluded is converted, with the groups
  // above it. `*` any characters of a name, `?` one, `[a-z]` one of these, `**` across names; without "/" in front they begin in
  // any group; a group stands for all below it. A pattern that matches nothing is an error.
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};  // patterns of what is left out; wins over `include`
  // Other files that libhdf5 reads for the source (external storage, sources of virtual datasets) have to be regular ones in its
  // folder or below; these folders are allowed as well, or, with "all", any. Others are not read, and named.
  std::vector<std::string> external = {};
  // As HDF5's own readers, with a lock (flock) that keeps writers away and is refused while one has the file open. false: without
  // it, also where somebody may write; a change that shows in the file's size or time still ends the conversion.
  bool lock = true;
  bool keep_going = false;       // a damaged chunk is left out and named, instead of ending the conversion
  bool allow_expansion = false;  // chunks may become more than 1,000 times larger, beyond `memory`, when they are decoded
  std::optional<zarrbits::profile> profile = {};  // not set: what effective_profile() says
  std::optional<compression> compress = {};       // recode: with this; not set: as portable does for compressed sources
  std::vector<std::uint64_t> chunk = {};  // recode: another shape of chunks, for all datasets of this rank; cut to their extents
  shard_size shard = {};                  // many chunks in one object, with Zarr's codec sharding_indexed
  zarrbits::checksum checksum = zarrbits::checksum::none;  // of every array
  array_codec codec = array_codec::automatic;              // of every array
  std::optional<zarrbits::convention> convention = {};     // not set: what the file says that it is
  // Not set: what lies in other files is copied, and what is in the source where the readers of its convention see it, as those
  // of netCDF, AnnData and NeXus do; with convention::none, which is HDF5's own terms, and of files that are joined nothing is.
  // An object that several links lead to is copied for each of them. Other files are read under the rules of `external`.
  std::optional<link_policy> links = {};
  std::optional<unsigned> bits = {};  // with packbits: how many bits of each integer to keep; values that do not fit are an error
  // Bits for the datasets that a pattern matches.
  struct pattern_bits {
    std::string pattern;  // as in `include`; one that matches nothing is an error
    unsigned bits = 0;    // as `bits`
  };
  std::vector<pattern_bits> bits_of = {};  // go before `bits`; of several whose pattern matches, the last one counts
  // The profile, or what the other options imply.
  zarrbits::profile effective_profile() const {
    const auto usual = references ? zarrbits::profile::native : zarrbits::profile::portable;
    return profile ? *profile : compress || !chunk.empty() ? zarrbits::profile::recode : usual;
  }
  unsigned threads = 0;                             // that make chunks; 0: as many as the processors that the process may use
  std::uint64_t memory = std::uint64_t{512} << 20;  // bytes for chunks under way; a chunk that is larger is made alone
  bool sync = false;                                // all is on the disk before it counts as done
  // Resume an unfinished store, or begin one; what is done stays, even if this run fails. With this, with `share` and in
  // finalize() options that are not set become those that the store was begun with; one that is set to something else is an
  // error. Of `external` only that it was set is known.
  bool resume = false;
  // Only this share of the work, and no metadata: finalize() writes them when all shares are done. Several processes may do so at
  // once.
  struct share_type {
    unsigned index = 0;  // from 0
    unsigned count = 1;  // how many shares there are
  };
  std::optional<share_type> share = {};                        // not set: all of the work
  std::function<void(const convert_progress&)> progress = {};  // called by any thread, one at a time
  std::function<void(const std::string&)> warning =
      {};  // called before the first chunk is made: a sentence on a bound or promise that this run cannot keep
  // Sentences name options in backquotes, as in "replace it with `overwrite`". Reasons pass through this on their way into the
  // store and the report: the place to call an option otherwise. (Those of exceptions and warnings are the caller's anyway.)
  std::function<std::string(const std::string& reason)> wording = {};
  // Called when only the last step is left that makes the store whole; what it throws ends the conversion. The place for reports.
  std::function<void(const convert_result&)> before_done = {};
  std::string run = {};        // tells what this run leaves, if it is killed, from what others leave: any text that is used once
  bool measure_first = false;  // add up the stored bytes before, for a progress bar
};

// One file of several.
struct joined_source {
  std::string file;                // its name
  std::uint64_t first = 0;         // where it begins along the dimension
  std::uint64_t count = 0;         // and how much of it is its
  bool left_out = false;           // it cannot be read, with convert_options::keep_going
  std::vector<std::string> notes;  // sentences: what of it is not as it was
};

// What became of a conversion.
struct convert_result {
  std::string source;                                            // as in the options
  std::string store;                                             // as in the options
  zarrbits::profile profile = zarrbits::profile::portable;       // convert_options::effective_profile()
  zarrbits::convention convention = zarrbits::convention::none;  // that was asked for, or that the file says
  link_counts links;                                             // that are not the first to their object
  std::vector<converted_object> objects;                         // everything that the source has
  std::uint64_t store_objects = 0;                               // files written
  std::uint64_t store_bytes = 0;                                 // and their bytes
  double seconds = 0;                                            // elapsed
  std::vector<std::string> other_files;                          // that were read beside the source
  // A file that was not read, and why.
  struct refused_file {
    std::string file;    // its name
    std::string reason;  // a sentence
  };
  std::vector<refused_file> refused_files;  // that were not
  std::vector<joined_source> sources;       // with convert_options::concat, in order; else empty

  // True where something was skipped, or cannot be rebuilt from the store.
  bool lost() const noexcept;
  // The report as strict JSON; docs/converter.md has its keys. A program that ends with an exit status gives that, to be in it.
  std::string report_json(std::optional<int> exit_status = {}) const;
};

// What convert_options::source says: "in.h5:/a/b" is object "/a/b" of "in.h5", unless a file has that very name.
struct source_name {
  std::string file;    // its name, or "s3://bucket/key"
  std::string object;  // "" for all of it
};
// Asks the file system which files there are, and nobody else.
source_name split_source(const std::string& text);

// The file in which a store "x.zip" grows until it is whole.
std::string unfinished_zip(const std::string& store);

// For a program that reads strangers' files and writes to S3, as its first step: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN are moved out of the environment into memory apart from the heap, also for its child processes.
void take_s3_keys();

// Removes what a conversion left that was killed: a store that is marked as unfinished, and that nobody writes to. With `run`,
// only one that the conversion with this convert_options::run began. True where there was one.
bool remove_unfinished_store(const std::string& store, const std::string& endpoint = {}, const std::string& run = {}) noexcept;

// Throws convert_error where an option, or two together, mean nothing. convert() does so before anything else.
void check_options(const convert_options& options);

// Converts. Throws convert_error; what cannot be converted but does not stand in the way of the rest is in the result.
[[nodiscard]] convert_result convert(const convert_options& options);

// What convert() would do with one dataset, as far as can be told without reading its values.
struct planned_dataset {
  std::string path;  // in the source
  // The costliest way that its chunks are expected to need; single ones, with a filter left out or damaged, may need another.
  zarrbits::outcome outcome = zarrbits::outcome::mapped;
  std::string how;                 // that way in words, or why it is skipped
  std::string codecs;              // JSON, of its array; "" where it becomes a group
  std::uint64_t objects = 0;       // files or objects to be written, at most: chunks that are stored, and metadata
  std::uint64_t source_bytes = 0;  // stored in the source
  // To be written for its chunks; the same as in the source where they are copied, at most their size without compression where
  // not.
  std::uint64_t store_bytes = 0;
  // A range of shards, or of chunks where there are none, in C order of their grid.
  struct unit {
    std::uint64_t first = 0;  // the index of the first one
    std::uint64_t count = 0;  // how many
    std::uint64_t bytes = 0;  // in the source, roughly
  };
  std::vector<unit> units;  // what processes share between them
};
// What convert() would do.
struct convert_plan {
  std::vector<planned_dataset> datasets;                         // all that were asked for
  std::uint64_t groups = 0;                                      // how many are written
  zarrbits::convention convention = zarrbits::convention::none;  // as convert_result has it
  link_counts links;                                             // as convert_result has them
  std::vector<std::string> other_files;                          // as convert_result has them
  std::vector<convert_result::refused_file> refused_files;       // as convert_result has them
  std::vector<joined_source> sources;                            // as convert_result has them
  std::string json() const;                                      // strict JSON
};
// Reads metadata alone, and writes nothing. `store` may be empty. Throws convert_error.
[[nodiscard]] convert_plan plan(const convert_options& options);

// One process of several that make the chunks of a store between them, in whatever order the units are handed out. When all are
// made, finalize() writes the metadata.
//
//   begin_store(options);                     // once, before the others join
//   convert_worker worker(options);           // in each process
//   for (const auto& u : worker.missing()) worker.make(u);
//
class convert_worker {
 public:
  // Some chunks of a dataset.
  struct unit {
    std::size_t dataset = 0;   // the index of the object in the source
    std::uint64_t number = 0;  // of this dataset's units, from 0
    std::string path;          // of the dataset
  };
  // Opens the source and joins the store. options.share tells the processes apart. Throws convert_error.
  explicit convert_worker(const convert_options& options);
  ~convert_worker();
  convert_worker(convert_worker&& other) noexcept;             // what is left of `other` can only be destroyed
  convert_worker& operator=(convert_worker&& other) noexcept;  // the same

  // The units that nobody has made so far. Opens every dataset.
  std::vector<unit> missing();
  // Makes one. Throws convert_error, after which others can be made.
  void make(const unit& u);

 private:
  struct state;
  std::unique_ptr<state> state_;
};
// Refuses a store that is there or, with `overwrite`, removes it; with `resume` does nothing. Throws convert_error.
void begin_store(const convert_options& options);

// The metadata of a store whose chunks were made in shares. Throws convert_error where some are missing, and says whose.
[[nodiscard]] convert_result finalize(const convert_options& options);

}  // namespace zarrbits

#endif
