// SPDX-License-Identifier: BSL-1.0
//
// Is this store, or this HDF5 file, all right? Needs nothing to compare it with.
//
//   zarrbits::integrity_report r = zarrbits::check({.name = "out.zarr"});
//   for (const auto& f : r.findings) std::cout << f.path << ' ' << f.key << ": " << f.reason << '\n';
//   return r.is_sound() ? 0 : 3;
//
// Reads all metadata and decodes every chunk: checksums, lengths, indexes of shards; then the rules that metadata and keys have
// to follow. docs/guide/check.md says what cannot be detected without a checksum.
//
// Needs libhdf5 at link time, the header does not. It keeps process-wide state: call these functions from one thread at a time.
//
#ifndef ZARRBITS_CHECK_HPP
#define ZARRBITS_CHECK_HPP

#include <zarrbits/convert_options.hpp>
#include <zarrbits/error.hpp>
#include <zarrbits/remote_access.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace zarrbits {

// How far a check is.
struct integrity_progress {
  std::string path;                         // of the current array
  std::uint64_t bytes_done = 0, bytes = 0;  // as stored, of the chunks that are read
};

// Options of a check.
struct integrity_options {
  std::string name = {};                   // a store ("x.zarr", "x.zip", references, "s3://..."), a file, or "x.h5:/a/b"
  remote_access remote = {};               // how stores and files on servers are reached
  std::vector<std::string> external = {};  // further folders whose files may be read for it, as convert_options has them
  bool metadata_only = false;              // read no chunk
  bool allow_missing = true;               // chunks may be missing: they have the fill value
  double sample = 1;                       // the share of the chunks (or shards) of each array that are read: more than 0, to 1
  std::uint64_t seed = 0;                  // of their choice
  // Read only this share of the chunks; the first share reports on metadata and names of objects.
  std::optional<zarrbits::partition> partition = {};
  bool lock = true;                                 // false: also read a file that another process has open for writing
  unsigned threads = 0;                             // that read and decode; 0: as many as there are processors
  std::uint64_t memory = std::uint64_t{512} << 20;  // limit for chunks in progress and lists of chunks
  std::function<void(const integrity_progress&)> progress = {};   // called repeatedly, in the calling thread
  std::function<void(const std::string& sentence)> warning = {};  // called with a promise that this run cannot keep
};

// How much a finding matters.
enum class finding_severity {
  problem,    // something is damaged, contradicts something else, or does not belong there
  unchecked,  // something could not be checked
  notice,     // something unusual, which is allowed
};
// Its name: "problem".
const char* to_string(finding_severity severity) noexcept;

// Something that a check found.
struct integrity_finding {
  finding_severity severity = finding_severity::problem;
  std::string rule;    // "chunk", "missing", "metadata", "consolidated", "dimensions", "key", "grid", "leftover", "link",
                       // "attribute", "netcdf", "file", "digest"
  std::string path;    // of the array or group: "/a/b"
  std::string key;     // of the object in the store, below `path`, or of the chunk in the file: "c/0/1"; empty: `path` itself
  std::string reason;  // in words
};

// The chunks of an array or a dataset.
struct checked_array {
  std::string path;           // "/a/b"
  std::uint64_t chunks = 0;   // in its grid; of datasets without chunks, the pieces in which they were read
  std::uint64_t checked = 0;  // of these, decoded
  std::uint64_t missing = 0;  // never written; of shards, as far as these were read; outside of shards, in the first share
  std::uint64_t damaged = 0;  // cannot be read or decoded
  std::uint64_t bytes = 0;    // as stored, of those that were read
};

// The result of a check.
struct integrity_report {
  std::string name;                                        // as in the options
  std::optional<zarrbits::partition> partition;            // as in the options
  std::string format;                                      // "HDF5", "Zarr v2", "Zarr v3"; empty: not known
  std::uint64_t groups = 0;                                // number of groups
  std::vector<checked_array> arrays;                       // in the order of their paths
  std::vector<integrity_finding> findings;                 // the first ones of each array and kind
  std::uint64_t problems = 0, unchecked = 0, notices = 0;  // all of them, also those that are not among `findings`
  std::string digest;                                      // of all values, if one was noted and all were read again
  double seconds = 0;                                      // elapsed time
  // True if there is no problem, and everything could be checked.
  bool is_sound() const noexcept { return problems == 0 && unchecked == 0; }
  // The report as strict JSON; docs/schema has its keys.
  std::string report_json() const;
};

// Throws error if an option makes no sense. check() calls it first.
void check_options(const integrity_options& options);

// Checks a store or a file. Damage is in the report; throws error if it cannot be reached at all.
[[nodiscard]] integrity_report check(const integrity_options& options);

}  // namespace zarrbits

#endif
