// SPDX-License-Identifier: BSL-1.0
//
// Does a Zarr v3 store hold what an HDF5 file holds? Values come from H5Dread on one side, and on the other from zarr.json and
// the chunks, through a separate reader. Nothing that chooses or makes chunks and metadata is shared with the conversion. Shared
// are: the core's codecs, how sources, S3 and .zip files are opened, names of nodes, the list of references, and the decoders of
// filters for which libhdf5 finds no plugin. Times, packing and the order of files are computed again, with other algorithms.
//
//   const zarrbits::verify_result r = zarrbits::verify({.source = "in.h5", .store = "out.zarr"});
//   if (r.failed()) for (const auto& f : r.findings) std::cout << f.path << ": " << f.reason << '\n';
//
// If `store` is an HDF5 file, too, the two files are compared: everything but layout, chunks and filters. "The store" then is the
// second file, in what follows.
//
// It compares the hierarchy, the shape, data type and fill value of every dataset, every element, every attribute, the names of
// dimensions, links and named types. The store cannot exclude anything by its own notes: only the caller selects, and an object
// that only the store calls unselected is `unchecked`.
//
// Needs libhdf5 at link time as zarrbits/convert.hpp does; call it from one thread at a time for the same reason.
//
#ifndef ZARRBITS_VERIFY_HPP
#define ZARRBITS_VERIFY_HPP

#include <zarrbits/convert_options.hpp>
#include <zarrbits/error.hpp>
#include <zarrbits/remote_access.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zarrbits {

// In order of severity: if a dataset has several verdicts, the last one counts.
enum class verdict {
  equal,       // all compared parts are equal
  unchecked,   // no difference was found, but a part could not be compared
  unreadable,  // libhdf5 cannot read it
  missing,     // not in the store
  differs,     // `reason` says where
};
inline constexpr std::size_t verdict_count = 5;  // number of verdicts
// Its name, as `zarrbits verify` prints it.
const char* to_string(verdict v) noexcept;

// One object of the source, or something that belongs to it.
struct finding {
  std::string path;                  // in the source
  std::string store_path;            // in the store; empty if it is missing
  std::string kind;                  // "group", "dataset", "attribute", "dimension names", "link", "named type", "note"
  std::string attribute;             // name of an attribute; "zarrbits.maxshape" for a note
  verdict outcome = verdict::equal;  // what was found
  std::string reason;                // a sentence; empty if all is equal
  bool has_index = false;            // true if `outcome` is `differs` at the element `index`
  std::vector<std::uint64_t> index;  // index of that element
  std::string field;                 // field of a compound; position in a list of an attribute
  std::string source_value;          // value of that element or attribute in the source
  std::string store_value;           // value in the store
};

// What a node of the store has and the source's object does not have.
struct extra {
  std::string store_path;  // path of the node
  std::string kind;        // "attribute", "link", "named type", "note"
  std::string name;        // its name
};

// What was compared, and the findings.
struct verify_result {
  std::vector<finding> findings;                               // everything that is not equal
  std::array<std::uint64_t, verdict_count> groups{};           // counts, by verdict
  std::array<std::uint64_t, verdict_count> datasets{};         // counts, by verdict
  std::array<std::uint64_t, verdict_count> attributes{};       // counts, by verdict
  std::array<std::uint64_t, verdict_count> dimension_names{};  // arrays, by verdict
  std::array<std::uint64_t, verdict_count> links{};            // links that are not nodes of the store, by verdict
  std::array<std::uint64_t, verdict_count> named_types{};      // counts, by verdict
  std::array<std::uint64_t, verdict_count> notes{};  // notes of the attribute "zarrbits" on types, limits and names, by verdict
  std::uint64_t elements = 0;                        // elements compared
  std::uint64_t elements_unchecked = 0;              // elements of datasets that are `unchecked`
  std::vector<std::string> only_in_store;            // nodes that the source does not have
  std::vector<extra> extras;                         // additions to nodes that the source has
  bool is_hdf5_pair = false;                         // both were HDF5 files
  bool is_exchanged = false;                         // `store` was an HDF5 file, and is the source of all that is said

  // True if something differs, is missing on one side, or cannot be read; notes that only the store has do not count.
  bool failed() const noexcept;
  // True if something could not be compared, or the store has more than the source, be it notes alone.
  bool incomplete() const noexcept;
};

// How far a comparison is.
struct verify_progress {
  std::string_view path;       // the current object
  std::uint64_t objects_done;  // objects done, out of `objects`; of several files: files
  std::uint64_t objects;       // 0 while they are counted
  std::uint64_t bytes_done;    // bytes of elements done, out of `bytes`
  std::uint64_t bytes;         // bytes of all elements in memory; 0: not counted, as of several files
};

// What to compare.
struct verify_options {
  // An HDF5 file, or the object of it that is the store's root: "in.h5:/a/b". If it is a Zarr store and `store` is an HDF5 file,
  // which `export` made of it, the two are exchanged.
  std::string source = {};
  // As convert_options has it. Each dataset of each file is compared with its part of the array. Numbers that were converted to
  // the terms of the first file (units, scale) are compared by meaning. Everything but values is compared with the first file
  // only.
  std::optional<concatenation> concat = {};
  // With `concat`: the files are some of those in the store, whose notes say where each one is. Only values are compared, and
  // neither the length of the arrays nor what no file of these has.
  bool part = false;
  // The source is a file of combine(), in place of several files, and the store is an HDF5 file that was made of these. Virtual
  // datasets cannot grow, so the maximum shapes of datasets are not compared.
  bool is_combined = false;
  // A directory, a file "x.zip", or "s3://bucket/prefix"; or an HDF5 file, or an object of it, as for `source`.
  std::string store = {};
  // As given to convert: names in references are those of local files, which are read.
  std::optional<source_base> base = {};
  remote_access remote = {};               // how sources and stores on servers are reached
  std::vector<std::string> include = {};   // patterns of what the store must hold, as convert_options has them
  bool with_coordinates = false;           // with `include`: also the coordinate variables of what it selects, as convert does
  std::vector<std::string> exclude = {};   // patterns of what it need not hold
  std::vector<std::string> external = {};  // folders in which the source's other files may be read, as convert_options has them
  bool lock = true;                        // lock the source, as convert_options has it
  unsigned threads = 0;                    // threads that decode and compare chunks; 0: one for each available processor
  // Bytes: half of them for chunks that are decoded and compared at the same time, and for a chunk of strings; the rest for a
  // store's references and what libhdf5 keeps. A chunk that needs more is processed alone.
  std::uint64_t memory = std::uint64_t{512} << 20;
  // What convert was asked to do. With copy, a target is missing if the store has only a note of the link; with keep, the note is
  // enough. Not set: unchecked if convert copies it by default and the store has only a note.
  std::optional<link_policy> links = {};
  std::function<void(const verify_progress&)> progress = {};      // called repeatedly, from the thread of verify()
  std::function<void(const std::string& sentence)> warning = {};  // called with a promise that this run cannot keep
};

// Throws error if an option makes no sense. verify() calls it first.
void check_options(const verify_options& options);

// True if there is a store that is not left unfinished by a conversion. Does not read its content.
[[nodiscard]] bool is_whole_store(const verify_options& options);

// Compares. Throws error; errors of a single object are in the result.
[[nodiscard]] verify_result verify(const verify_options& options);

}  // namespace zarrbits

#endif
